// The `stowage` command.
#include "cli/run_main.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  return stowage::cli::run_main(argc, argv, stowage::cli::run_stowage);
}
