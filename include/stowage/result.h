// What every call of Stowage answers with: a value, or an error of one line with a hint
// (stowage::Result, Status, Error); and which Stowage this is (stowage::kVersion).
#pragma once

#include "traces/build_info.h"
#include "traces/result.h"
