#include "core/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "core/error.h"

namespace ridgeline {
namespace {

using testing::HasSubstr;

enum class Color { red, green };

struct Record {
  int64_t layers = 4;
  uint64_t seed = 1;
  double lr = 1e-3;
  bool tied = true;
  std::string path = "here";
  std::string device = "auto";
  Color color = Color::red;
  std::vector<int64_t> stages;
};

struct Bound {
  Record record;
  Schema schema;
  Bound() {
    schema.table("model", "The model");
    schema.key("model.layers", record.layers, "layers", between(1, 100));
    schema.key("model.tied", record.tied, "tied");
    schema.key("model.stages", record.stages, "layers of stages", at_least(1));
    schema.choice<Color>("model.color", record.color, {{"red", Color::red}, {"green", Color::green}}, "a | b");
    schema.table("run", "The run");
    schema.key("run.seed", record.seed, "seed");
    schema.key("run.lr", record.lr, "rate", above(0));
    schema.key("run.path", record.path, "path");
    schema.choice("run.device", record.device, {"auto", "cpu"}, "device");
  }
  void read(const std::string& text) {
    schema.read_text(text, "run.toml");
    schema.apply();
  }
  std::string error(const std::string& text) {
    try {
      schema.read_text(text, "run.toml");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  std::string set_error(const std::string& assignment) {
    try {
      schema.set(assignment);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST(Schema, ReadsEveryType) {
  Bound bound;
  bound.read(
      "[model]\nlayers = 12\ntied = false\nstages = [3, 4, 5]\ncolor = 'green'\n"
      "[run]\nseed = 99\nlr = 1\npath = \"a b\"\ndevice = 'cpu'\n");
  EXPECT_EQ(bound.record.layers, 12);
  EXPECT_FALSE(bound.record.tied);
  EXPECT_EQ(bound.record.stages, (std::vector<int64_t>{3, 4, 5}));
  EXPECT_EQ(bound.record.color, Color::green);
  EXPECT_EQ(bound.record.seed, 99u);
  EXPECT_EQ(bound.record.lr, 1.0);
  EXPECT_EQ(bound.record.path, "a b");
  EXPECT_EQ(bound.record.device, "cpu");
}

TEST(Schema, ChangesNothingBeforeApply) {
  Bound bound;
  bound.schema.read_text("model.layers = 12", "run.toml");
  EXPECT_EQ(bound.record.layers, 4);
  bound.schema.apply();
  EXPECT_EQ(bound.record.layers, 12);
}

TEST(Schema, NamesFileLineKeyAndNearestKey) {
  Bound bound;
  EXPECT_EQ(bound.error("[model]\n\nlayer = 3\n"),
            "run.toml:3: unknown key 'model.layer'; did you mean 'model.layers'? (`ridgeline config` lists all keys)");
  EXPECT_THAT(bound.error("lr = 3\n"), HasSubstr("run.toml:1: unknown key 'lr'; did you mean 'run.lr'?"));
  EXPECT_THAT(bound.error("[modle]\nlayers = 3\n"),
              HasSubstr("run.toml:1: unknown table 'modle'; did you mean 'model'?"));
  EXPECT_THAT(bound.error("[model.layers.deep]\nx = 1\n"),
              HasSubstr("model.layers: expected an integer 1 to 100, found a table"));
  EXPECT_THAT(bound.error("model = 3\n"),
              HasSubstr("run.toml:1: model: expected the table [model], found the integer 3"));
}

TEST(Schema, ReportsTheFirstFaultOfTheFile) {
  Bound bound;
  EXPECT_THAT(bound.error("[run]\nzzz = 1\n[model]\naaa = 1\n"), HasSubstr("run.toml:2: unknown key 'run.zzz'"));
}

TEST(Schema, SaysWhatWasFoundAndExpected) {
  Bound bound;
  EXPECT_EQ(bound.error("[model]\nlayers = \"x\""),
            "run.toml:2: model.layers: expected an integer 1 to 100, found the string 'x'");
  EXPECT_THAT(bound.error("model.layers = 1e3"), HasSubstr("expected an integer 1 to 100, found the number 1000"));
  EXPECT_THAT(bound.error("model.layers = 101"), HasSubstr("found the integer 101"));
  EXPECT_THAT(bound.error("model.tied = 1"), HasSubstr("expected true or false, found the integer 1"));
  EXPECT_THAT(bound.error("model.stages = [1, 0]"), HasSubstr("each >= 1, found the integer 0 in the list"));
  EXPECT_THAT(bound.error("model.stages = 1"), HasSubstr("expected a list of integers each >= 1, found the integer 1"));
  EXPECT_THAT(bound.error("model.color = 'gren'"), HasSubstr("found the string 'gren'; did you mean 'green'?"));
  EXPECT_THAT(bound.error("run.lr = 0.0"), HasSubstr("expected a number > 0, found the number 0"));
  EXPECT_THAT(bound.error("run.lr = nan"), HasSubstr("expected a number > 0, found the number nan"));
  EXPECT_THAT(bound.error("run.lr = inf"), HasSubstr("found the number inf"));
  EXPECT_THAT(bound.error("run.seed = -1"), HasSubstr("expected an integer >= 0, found the integer -1"));
  EXPECT_THAT(bound.error("run.path = 2020-01-01"), HasSubstr("expected a string, found a date or time"));
}

TEST(Schema, RefusesBrokenAndHostileFiles) {
  Bound bound;
  EXPECT_THAT(bound.error("[model]\nlayers = \n"), HasSubstr("run.toml:2: not valid TOML"));
  EXPECT_THAT(bound.error("[model]\nlayers = 1\nlayers = 2\n"), HasSubstr("run.toml:3: not valid TOML"));
  std::string dots = "a";
  for (int i = 0; i < 100000; ++i) dots += ".a";
  EXPECT_THAT(bound.error(dots + " = 1"), HasSubstr("more than 200 dots"));
  EXPECT_THAT(bound.error("x = " + std::string(100000, '[')), HasSubstr("not valid TOML"));
  EXPECT_THAT(bound.error("x = \"\xff\""), HasSubstr("not valid TOML"));
}

TEST(Schema, RefusesFilesThatCannotBeRead) {
  Bound bound;
  EXPECT_THROW(bound.schema.read_file("/nonexistent/run.toml"), InputError);
  EXPECT_THROW(bound.schema.read_file("/"), InputError);
  const std::string path = testing::TempDir() + "/ridgeline-huge.toml";
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  try {
    bound.schema.read_file(path);
    ADD_FAILURE() << "a huge file was read";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("larger than 1 MiB"));
  }
  std::remove(path.c_str());
}

TEST(Schema, SetTakesTomlValuesAndBareWords) {
  Bound bound;
  for (const char* assignment : {"model.layers=7", "model.tied = false", "model.stages=[3, 4]", "run.path=a#b=c",
                                 "run.device=cpu", "run.lr=3e-4", "model.color=\"green\""}) {
    bound.schema.set(assignment);
  }
  bound.schema.apply();
  EXPECT_EQ(bound.record.layers, 7);
  EXPECT_FALSE(bound.record.tied);
  EXPECT_EQ(bound.record.stages, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(bound.record.path, "a#b=c");
  EXPECT_EQ(bound.record.device, "cpu");
  EXPECT_EQ(bound.record.lr, 3e-4);
  EXPECT_EQ(bound.record.color, Color::green);
}

TEST(Schema, SetRefusesWhatAFileCouldNotHold) {
  Bound bound;
  EXPECT_THAT(bound.set_error("model.layers"), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(bound.set_error("model.layers=many"), HasSubstr("--set: model.layers: expected an integer"));
  EXPECT_THAT(bound.set_error("model.layers=1\nother=2"), HasSubstr("expected an integer 1 to 100, found the string"));
  EXPECT_THAT(bound.set_error("model.layerz=1"), HasSubstr("did you mean 'model.layers'?"));
}

TEST(Schema, RemembersSourcesAndOverrides) {
  Bound bound;
  bound.schema.read_text("[model]\nlayers = 12\n", "run.toml");
  EXPECT_EQ(bound.schema.sources().of("model.layers"), "run.toml:2");
  EXPECT_EQ(bound.schema.sources().of("run.lr"), "default");
  bound.schema.set("model.layers=7");
  EXPECT_EQ(bound.schema.sources().of("model.layers"), "--set");
  EXPECT_THAT(bound.schema.overrides(), testing::ElementsAre("model.layers = 7 (--set) replaces 12 (run.toml:2)"));
}

TEST(Schema, AfterRunsBeforeLaterKeys) {
  Bound bound;
  bound.schema.after("model.layers", [&] { bound.record.path = "from layers"; });
  bound.read("model.layers = 5\n");
  EXPECT_EQ(bound.record.path, "from layers");
  bound.read("run.path = 'given'\nmodel.layers = 5\n");
  EXPECT_EQ(bound.record.path, "given");
}

TEST(Schema, LocatesLaterErrors) {
  Bound bound;
  bound.read("[model]\nlayers = 12\n");
  const auto text = [&](const char* message) -> std::string {
    try {
      bound.schema.sources().located([&] { throw InputError("{}", message); });
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(text("model.layers = 12: too many"), "run.toml:2: model.layers = 12: too many");
  EXPECT_EQ(text("run.lr = 1: too few for model.layers"), "run.toml:2: run.lr = 1: too few for model.layers");
  EXPECT_EQ(text("nothing known"), "nothing known");
}

TEST(Schema, TomlReadsBackToTheSame) {
  Bound bound;
  bound.record = {.layers = 9,
                  .seed = 1234567890123456789u,
                  .lr = 0.1 + 0.2,
                  .tied = false,
                  .path = "quote \" back \\ tab \t bell \x07 \xc3\xa9",
                  .device = "cpu",
                  .color = Color::green,
                  .stages = {1, 2, 6}};
  Bound other;
  other.read(bound.schema.to_toml());
  EXPECT_EQ(other.schema.to_toml(), bound.schema.to_toml());
  EXPECT_EQ(other.record.lr, bound.record.lr);
  EXPECT_EQ(other.record.seed, bound.record.seed);
  EXPECT_EQ(other.record.path, bound.record.path);
}

TEST(Schema, CommentedTomlShowsDefaultsAndReadsBack) {
  Bound bound;
  bound.record.layers = 9;
  const std::string text = bound.schema.to_toml(true);
  EXPECT_THAT(text, HasSubstr("# layers (an integer 1 to 100)\nlayers = 9\n"));
  EXPECT_THAT(text, HasSubstr("# seed = 1\n"));
  Bound other;
  other.read(text);
  EXPECT_EQ(other.record.layers, 9);
  EXPECT_EQ(other.schema.sources().of("run.seed"), "default");
}

TEST(Schema, MarkdownHasARowForEachKey) {
  Bound bound;
  const std::string text = bound.schema.markdown();
  for (const std::string& name : bound.schema.names()) EXPECT_THAT(text, HasSubstr("| `" + name + "` |"));
  EXPECT_THAT(text, HasSubstr("a \\| b"));
  EXPECT_THAT(text, HasSubstr("| `run.lr` | a number > 0 | `0.001` | rate |"));
}

TEST(Schema, KeysBeforeAllTables) {
  std::string model = "gpt-tiny";
  int64_t trials = 10;
  Schema schema;
  schema.table("", "The study");
  schema.key("model", model, "model");
  schema.table("budget", "What it may take");
  schema.key("budget.trials", trials, "trials");
  schema.listed_by("`ridgeline tune --keys`");
  schema.read_text("model = \"gpt3-175b\"\n[budget]\ntrials = 60\n", "study.toml");
  schema.apply();
  EXPECT_EQ(model, "gpt3-175b");
  EXPECT_EQ(trials, 60);
  EXPECT_EQ(schema.sources().of("model"), "study.toml:1");
  EXPECT_EQ(schema.to_toml(), "model = \"gpt3-175b\"\n\n[budget]\ntrials = 60\n");
  try {
    schema.read_text("modle = 1\n", "study.toml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("study.toml:1: unknown key 'modle'; did you mean 'model'?"));
    EXPECT_THAT(error.what(), HasSubstr("`ridgeline tune --keys` lists all keys"));
  }
}

TEST(Schema, WordsAreTextsOfOneValueOrAList) {
  std::vector<std::string> one, many;
  Schema schema;
  schema.table("space", "The space");
  schema.words("space.one", one, "one");
  schema.words("space.many", many, "many");
  schema.read_text("[space]\none = 4\nmany = [1, true, \"2..8\"]\n", "study.toml");
  schema.apply();
  EXPECT_EQ(one, std::vector<std::string>({"4"}));
  EXPECT_EQ(many, std::vector<std::string>({"1", "true", "2..8"}));
  Schema again;
  again.table("space", "The space");
  std::vector<std::string> first, second;
  again.words("space.one", first, "one");
  again.words("space.many", second, "many");
  again.read_text(schema.to_toml(), "again.toml");
  again.apply();
  EXPECT_EQ(first, one);
  EXPECT_EQ(second, many);
  try {
    schema.read_text("[space]\nmany = [1, [2]]\n", "study.toml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("study.toml:2: space.many: expected a string, an integer, true, false"));
    EXPECT_THAT(error.what(), HasSubstr("found a list in the list"));
  }
}

TEST(Interval, HoldsItsBounds) {
  EXPECT_TRUE(between(0, 1).contains(1));
  EXPECT_FALSE(from_below(0, 1).contains(1));
  EXPECT_TRUE(from_below(0, 1).contains(0));
  EXPECT_FALSE(above(0).contains(0));
  EXPECT_FALSE(any_number().contains(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(between(0, 1).to_string(), "0 to 1");
  EXPECT_EQ(from_below(0, 1).to_string(), "0 to below 1");
  EXPECT_EQ(any_number().to_string(), "");
}

}  // namespace
}  // namespace ridgeline
