// What is said of a trace, a plan and a simulation: inspect() and diff_texts(), words for people,
// JSON for programs (docs/cli.md), pictures and tables of a step (docs/exports.md).
#pragma once

#include "report/answers/diff_output_json.h"
#include "report/answers/diff_text.h"
#include "report/answers/inspect_json.h"
#include "report/answers/inspect_text.h"
#include "report/answers/plan_answer.h"
#include "report/answers/policies_json.h"
#include "report/answers/simulate_json.h"
#include "report/answers/simulation_text.h"
#include "report/diff.h"
#include "report/export_format.h"
#include "report/inspect.h"
#include "report/step_view.h"
#include "report/text_escape.h"
