#include "report/answers/note_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stowage::report {
namespace {

using Lines = std::vector<std::string>;

TEST(NoteLines, SayOnceWhatIsTheSameOfSeveral) {
  EXPECT_EQ(note_lines({"a.weight stays: no backward uses it", "the step fits already",
                        "b.weight stays: the step does not use it",
                        "c.weight stays: no backward uses it", "d stays: no backward uses it"}),
            (Lines{"a.weight (and 2 more) stays: no backward uses it", "the step fits already",
                   "b.weight stays: the step does not use it"}));
}

TEST(NoteLines, KnowTheSimulatorsToo) {
  EXPECT_EQ(note_lines({"layers.0#1: stays: its parameter streams",
                        "layers.1#1: stays: its parameter streams"}),
            (Lines{"layers.0#1 (and 1 more): stays: its parameter streams"}));
}

// The 127 saved parameters of a GPT-2 that a policy offloads.
TEST(NoteLines, SayOnceThatSeveralFreeNothing) {
  const std::string older = " frees nothing: its storage existed before the step";
  EXPECT_EQ(note_lines({"embed#0" + older, "head#0" + older, "loss#1 frees nothing: held"}),
            (Lines{"embed#0 (and 1 more)" + older, "loss#1 frees nothing: held"}));
  EXPECT_EQ(note_lines({"embed#0:" + older, "head#0:" + older}),
            (Lines{"embed#0 (and 1 more):" + older}));
}

TEST(NoteLines, LeaveOthersAsTheyAre) {
  const Lines notes{"x: leaves late", "x: leaves late", ""};
  EXPECT_EQ(note_lines(notes), notes);
  EXPECT_EQ(note_lines({}), Lines{});
}

}  // namespace
}  // namespace stowage::report
