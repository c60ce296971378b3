// Ranks of one launcher are children of one process: of those, one says what all have to say.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "launch/say_once.h"

namespace ridgeline::launch {
namespace {

// A child that claims `message`, answers whether it was the first through `answer`, and lives until `stay` is closed.
class Rank {
 public:
  explicit Rank(const std::string& message) {
    int answer[2], stay[2];
    if (pipe(answer) != 0 || pipe(stay) != 0) throw std::runtime_error("pipe");
    process_ = fork();
    if (process_ == 0) {
      close(stay[1]);
      const char first = is_first_to_say(message) ? 'y' : 'n';
      char end = 0;
      const bool told = write(answer[1], &first, 1) == 1;
      _exit(told && read(stay[0], &end, 1) == 0 ? 0 : 1);
    }
    close(answer[1]);
    close(stay[0]);
    char first = 0;
    if (read(answer[0], &first, 1) != 1) throw std::runtime_error("read");
    close(answer[0]);
    is_first_ = first == 'y';
    stay_ = stay[1];
  }
  ~Rank() {
    close(stay_);
    waitpid(process_, nullptr, 0);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  bool is_first() const { return is_first_; }

 private:
  pid_t process_ = -1;
  int stay_ = -1;
  bool is_first_ = false;
};

TEST(SayOnce, OneOfAllRanks) {
  const Rank first("strategy.tensor = 3: no"), second("strategy.tensor = 3: no");
  EXPECT_TRUE(first.is_first());
  EXPECT_FALSE(second.is_first());
}

TEST(SayOnce, AnotherMessageIsNotLost) {
  const Rank first("strategy.tensor = 3: no"), second("run.toml: cannot read");
  EXPECT_TRUE(first.is_first());
  EXPECT_TRUE(second.is_first());
}

TEST(SayOnce, LongMessagesThatBeginAlikeDiffer) {
  const std::string beginning(5000, 'x');
  const Rank first(beginning + "1"), second(beginning + "2"), third(beginning + "1");
  EXPECT_TRUE(first.is_first());
  EXPECT_TRUE(second.is_first());
  EXPECT_FALSE(third.is_first());
}

TEST(SayOnce, TheNextJobSpeaksAgain) {
  { const Rank gone("strategy.tensor = 3: no"); }
  const Rank next("strategy.tensor = 3: no");
  EXPECT_TRUE(next.is_first());
}

}  // namespace
}  // namespace ridgeline::launch
