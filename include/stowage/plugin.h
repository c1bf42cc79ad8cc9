// STOWAGE_PLUGIN(info, make): a model in a shared library, which every verb of the `stowage`
// command takes as plugin:LIB.so (docs/models.md).
#pragma once

#include "executor/model.h"
#include "executor/models/option_reader.h"
#include "executor/plugin.h"
