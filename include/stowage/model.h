// stowage::executor::Model: a model as the programs and plugins have it; reading its options
// (OptionReader), drawing its parameters (ParameterSet), and the built-in ones (make_model()).
#pragma once

#include "executor/model.h"
#include "executor/models/option_reader.h"
#include "executor/models/parameter_set.h"
