// Actors: the order of calls, results, exceptions, `close`, and time left to other fibers.
#include "pirn/sync/actor.hpp"

#include <algorithm>
#include <any>
#include <stdexcept>

#include "fiber/support.hpp"

namespace {

using namespace pirn_test;

struct account {
  explicit account(int start = 0) : balance(start) {}
  int balance;
  std::vector<int> log;
};

TEST(actor, does_what_is_sent_in_order) {
  rig r(2);
  r.rt.run([] {
    pirn::actor<account> a(5);
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(a.post([i](account& self) { self.log.push_back(i); }));
    }
    const std::vector<int> seen = a.call([](const account& self) { return self.log; });
    ASSERT_EQ(seen.size(), 100U);
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
    }
    EXPECT_EQ(a.ask([](account& self) { return self.balance += 2; }).get(), 7);
    int out = 0;
    a.call([&](const account& self) { out = self.balance; });
    EXPECT_EQ(out, 7);
    int& inside = a.call([](account& self) -> int& { return self.balance; });
    EXPECT_EQ(inside, 7);
  });
}

TEST(actor, is_made_in_a_runtime_of_choice_with_and_without_options) {
  rig r(1);
  const auto balance_of = [](pirn::actor<account>& a) {
    return a.call([](const account& self) { return self.balance; });
  };
  pirn::actor<account> plain(r.rt);
  EXPECT_EQ(balance_of(plain), 0);
  pirn::actor<account> with_argument(r.rt, 3);
  EXPECT_EQ(balance_of(with_argument), 3);
  pirn::actor<account> with_braces(r.rt, {});
  EXPECT_EQ(balance_of(with_braces), 0);
  pirn::actor<account> named(r.rt, {.name = "account"}, 4);
  EXPECT_EQ(balance_of(named), 4);
  const pirn::spawn_options options{.name = "other"};
  pirn::actor<account> with_options(r.rt, options, 5);
  EXPECT_EQ(balance_of(with_options), 5);
  EXPECT_EQ(with_options.call([](account& /*self*/) { return std::string(pirn::this_fiber::name()); }), "other");
  pirn::actor deduced(r.rt, account(6));
  EXPECT_EQ(balance_of(deduced), 6);
  pirn::actor deduced_with_options(r.rt, {.name = "account"}, account(7));
  EXPECT_EQ(balance_of(deduced_with_options), 7);
  r.rt.run([&] {
    pirn::actor here(account(8));
    EXPECT_EQ(balance_of(here), 8);
  });
  static_assert(!std::is_constructible_v<pirn::actor<account>, pirn::runtime&, std::string>);

  // The runtime is the actor's, even for a state that is made of anything.
  pirn::actor<std::any> any(r.rt);
  EXPECT_FALSE(any.call([](const std::any& self) { return self.has_value(); }));
  pirn::actor<std::any> any_with_options(r.rt, options);
  EXPECT_EQ(any_with_options.call([](std::any& /*self*/) { return std::string(pirn::this_fiber::name()); }), "other");
}

TEST(actor, values_may_be_move_only) {
  rig r(1);
  r.rt.run([] {
    pirn::actor<std::unique_ptr<int>> a;
    EXPECT_TRUE(
        a.post([given = std::make_unique<int>(4)](std::unique_ptr<int>& self) mutable { self = std::move(given); }));
    EXPECT_EQ(*a.call([](std::unique_ptr<int>& self) { return std::move(self); }), 4);
  });
}

TEST(actor, calls_do_not_overlap_and_none_is_lost) {
  constexpr int senders = 6;
  const int each = scaled(5000);
  rig r(3);
  struct counter {
    int value = 0;
    bool inside = false;
  };
  pirn::actor<counter> a(r.rt, {.name = "counter", .worker = 0});
  const auto add = [](counter& self) {
    EXPECT_FALSE(std::exchange(self.inside, true));
    const int before = self.value;
    if (before % 7 == 0) {
      pirn::this_fiber::yield();  // others may send, and no other call may begin
    }
    self.value = before + 1;
    self.inside = false;
  };
  std::vector<pirn::fiber> fibers;
  for (int s = 0; s < senders; ++s) {
    fibers.push_back(r.rt.spawn(
        [&] {
          for (int i = 0; i < each; ++i) {
            if (i % 3 == 0) {
              a.call(add);
            } else {
              EXPECT_TRUE(a.post(add));
            }
          }
        },
        {.worker = s % 3}));
  }
  std::thread outside([&] {
    for (int i = 0; i < each; ++i) {
      if (i % 3 == 0) {
        a.call(add);
      } else {
        EXPECT_TRUE(a.post(add));
      }
    }
  });
  outside.join();
  for (pirn::fiber& f : fibers) {
    f.join();
  }
  EXPECT_EQ(a.call([](const counter& self) { return self.value; }), (senders + 1) * each);
}

TEST(actor, what_a_call_throws_reaches_the_caller) {
  rig r(1);
  r.rt.run([] {
    pirn::actor<account> a;
    EXPECT_THROW(a.call([](account&) { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_THROW(static_cast<void>(a.ask([](account&) -> int { throw std::logic_error("no"); }).get()),
                 std::logic_error);
    EXPECT_EQ(a.call([](const account& self) { return self.balance; }), 0) << "it goes on";
  });
}

std::atomic<int> unhandled = 0;
std::exception_ptr last_unhandled;

TEST(actor, what_a_posted_call_throws_is_told) {
  const auto before =
      pirn::set_unhandled_exception_handler([](std::uint64_t, std::string_view name, std::exception_ptr what) noexcept {
        unhandled += name == "teller" ? 1 : 100;
        last_unhandled = std::move(what);
      });
  rig r(1);
  {
    pirn::actor<account> a(r.rt, {.name = "teller"});
    EXPECT_TRUE(a.post([](account&) { throw 1; }));
    EXPECT_EQ(a.call([](const account& self) { return self.balance; }), 0);
  }
  EXPECT_EQ(unhandled, 1);
  EXPECT_THROW(std::rethrow_exception(std::exchange(last_unhandled, nullptr)), int);
  pirn::set_unhandled_exception_handler(before);
}

TEST(actor, closed_it_does_what_was_sent_before_and_takes_no_more) {
  rig r(2);
  std::atomic<int> done = 0;
  {
    pirn::actor<account> a(r.rt, {});
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(a.post([&](account&) {
        pirn::this_fiber::yield();
        ++done;
      }));
    }
    a.close();
    a.close();
    EXPECT_FALSE(a.post([](account&) {}));
    EXPECT_THROW(a.call([](account&) {}), std::system_error);
    EXPECT_THROW(static_cast<void>(a.ask([](account&) { return 1; }).get()), pirn::future_error);
  }
  EXPECT_EQ(done, 50);
}

TEST(actor, a_call_of_itself_is_refused_and_a_post_is_not) {
  rig r(1);
  r.rt.run([] {
    pirn::actor<account> a;
    a.call([&](account& self) {
      EXPECT_TRUE(a.post([](account& later) { ++later.balance; }));
      EXPECT_EQ(self.balance, 0);
      EXPECT_THROW(a.call([](account&) {}), std::system_error);
    });
    EXPECT_EQ(a.call([](const account& self) { return self.balance; }), 1);
  });
}

TEST(actor, one_that_sends_to_itself_for_ever_leaves_time_to_others) {
  rig r(1);
  r.rt.run([] {
    struct loop {
      pirn::actor<loop>* self = nullptr;
      bool on = true;
      void turn() {
        if (on) {
          EXPECT_TRUE(self->post([](loop& state) { state.turn(); }));
        }
      }
    };
    pirn::actor<loop> a;
    a.call([&](loop& state) {
      state.self = &a;
      state.turn();
    });
    for (int i = 0; i < 100; ++i) {
      pirn::this_fiber::yield();
    }
    a.call([](loop& state) { state.on = false; });
  });
}

TEST(actor, one_whose_mailbox_is_flooded_leaves_time_to_others) {
  rig r(1);
  r.rt.run([] {
    constexpr int flood = 10'000;
    int done = 0;
    int longest = 0;
    pirn::fiber neighbour;
    {
      pirn::actor<account> a;
      for (int i = 0; i < flood; ++i) {
        EXPECT_TRUE(a.post([&](account&) { ++done; }));
      }
      neighbour = pirn::spawn([&] {
        for (int before = 0; before < flood;) {
          const int now = done;
          longest = std::max(longest, now - before);
          before = now;
          pirn::this_fiber::yield();
        }
      });
    }
    neighbour.join();
    EXPECT_EQ(done, flood);
    EXPECT_LE(longest, 64);
  });
}

TEST(actor, needs_a_runtime_on_a_plain_thread) { EXPECT_THROW(pirn::actor<account>(1), std::system_error); }

TEST(actor, ends_while_others_have_just_sent) {
  rig r(3);
  for (int round = 0; round < scaled(100); ++round) {
    std::atomic<int> done = 0;
    std::atomic<int> sent = 0;
    auto a = std::make_unique<pirn::actor<account>>(r.rt, pirn::spawn_options{.worker = round % 3});
    pirn::fiber sender = r.rt.spawn(
        [&] {
          while (a->post([&](account&) { ++done; })) {
            ++sent;
            pirn::this_fiber::yield();
          }
        },
        {.worker = (round + 1) % 3});
    while (sent < 3) {
      std::this_thread::yield();
    }
    a->close();
    sender.join();
    a.reset();
    EXPECT_EQ(done, sent);
  }
}

}  // namespace
