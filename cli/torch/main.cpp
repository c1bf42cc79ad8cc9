// The `stowage-torch` command.
#include "cli/run_main.h"
#include "cli/torch/end_process.h"
#include "cli/torch/torch_verbs.h"

int main(int argc, char** argv) {
  stowage::cli::end_process(stowage::cli::run_main(argc, argv, stowage::cli::run_stowage_torch));
}
