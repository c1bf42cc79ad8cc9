#include "executor/site_tracker.h"

#include <gtest/gtest.h>

namespace stowage::executor {
namespace {

using simulator::Pass;

void expect_site(const Site& site, std::string_view layer, int call, int ordinal, Pass pass,
                 int micro_batch) {
  EXPECT_EQ(site.layer, layer);
  EXPECT_EQ(site.call, call);
  EXPECT_EQ(site.ordinal, ordinal);
  EXPECT_EQ(site.pass, pass);
  EXPECT_EQ(site.micro_batch, micro_batch);
}

TEST(SiteTracker, CountsCallsAndPacks) {
  SiteTracker sites;
  sites.reset();
  expect_site(sites.next_pack(), "step", 0, 0, Pass::forward, 0);
  for (int call = 0; call < 2; ++call) {
    sites.enter("a");
    expect_site(sites.next_pack(), "a", call, 0, Pass::forward, 0);
    sites.enter("a.b");
    expect_site(sites.next_pack(), "a.b", call, 0, Pass::forward, 0);
    sites.leave();
    expect_site(sites.next_pack(), "a", call, 1, Pass::forward, 0);
    sites.leave();
  }
  expect_site(sites.next_pack(), "step", 0, 1, Pass::forward, 0);
  sites.reset();
  expect_site(sites.next_pack(), "step", 0, 0, Pass::forward, 0);
}

TEST(SiteTracker, TheFirstLayerBehindABackwardBeginsAMicroBatch) {
  SiteTracker sites;
  sites.reset();
  sites.enter("a");
  sites.leave();
  sites.backward_begin();
  expect_site(sites.next_pack(), "step", 0, 0, Pass::backward, 0);
  sites.enter("a");  // run again inside of backward
  expect_site(sites.next_pack(), "a", 1, 0, Pass::backward, 0);
  sites.leave();
  sites.backward_begin();  // a backward in a backward
  sites.backward_end();
  expect_site(sites.next_pack(), "step", 0, 1, Pass::backward, 0);
  sites.backward_end();
  expect_site(sites.next_pack(), "step", 0, 2, Pass::forward, 0);
  sites.enter("a");
  expect_site(sites.next_pack(), "a", 2, 0, Pass::forward, 1);
  sites.leave();
  sites.enter("b");
  expect_site(sites.next_pack(), "b", 0, 0, Pass::forward, 1);
  sites.leave();
  sites.reset();
  sites.enter("a");
  expect_site(sites.next_pack(), "a", 0, 0, Pass::forward, 0);
}

}  // namespace
}  // namespace stowage::executor
