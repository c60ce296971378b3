#include "simulate/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "simulate/measured.h"

namespace ridgeline::simulate {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Table, ReadsQuotedCellsAndLineNumbers) {
  const Table table = parse_table("a,b,c\n1,\"x, \"\"y\"\"\nz\",\n\n 2 ,,3\r\n", "runs.csv");
  ASSERT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.text(0, "b"), "x, \"y\"\nz");
  EXPECT_EQ(table.number(1, "a"), 2.0);
  EXPECT_EQ(table.number(1, "b"), std::nullopt);
  EXPECT_EQ(table.count(1, "c"), 3);
  EXPECT_EQ(table.where(1), "runs.csv:5");
  EXPECT_EQ(table.text(0, "missing"), "");
}

TEST(Table, SaysWhereItIsBroken) {
  const auto message = [](const char* text) { return ThrowsMessage<InputError>(HasSubstr(text)); };
  EXPECT_THAT([] { parse_table("", "f.csv"); }, message("f.csv: expected a header"));
  EXPECT_THAT([] { parse_table("a,b\n1,2\n3\n", "f.csv"); }, message("f.csv:3: 1 cells, but the header names 2"));
  EXPECT_THAT([] { parse_table("a,b\n1,\"2\n", "f.csv"); }, message("f.csv:2: a quoted cell does not end"));
  const Table table = parse_table("a,b\nx,1.5\n", "f.csv");
  EXPECT_THAT([&] { (void)table.number(0, "a"); }, message("f.csv:2: column 'a' = 'x'"));
  EXPECT_THAT([&] { (void)table.count(0, "b"); }, message("whole number"));
  EXPECT_THAT([&] { measured_runs(table); }, message("columns are not known"));
}

TEST(Measured, IncompleteRowsSayWhatIsMissing) {
  const Table table = parse_table(
      "source,system,gpu,gpu_count,model,layers,hidden,heads,seq_len,vocab,tp,pp,micro_batch,global_batch,recompute,"
      "iteration_s\n"
      "s,Frontier,GCD,16,m,48,6144,48,2048,50304,1,8,1,320,full,100\n"
      "s,Frontier,GCD,16,m,48,6144,48,2048,50304,,8,1,320,full,100\n"
      "s,Frontier,GCD,16,m,48,6144,48,2048,50304,1,7,1,320,full,100\n"
      "s,Frontier,GCD,16,m,48,6144,48,2048,50304,1,8,1,320,full,\n",
      "runs.csv");
  const auto runs = measured_runs(table);
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].why_not, "");
  EXPECT_EQ(runs[0].strategy.data, 2);
  EXPECT_EQ(runs[0].machine, "frontier");
  EXPECT_THAT(runs[1].why_not, HasSubstr("tp is not known"));
  EXPECT_THAT(runs[2].why_not, HasSubstr("strategy.pipeline"));
  EXPECT_THAT(runs[3].why_not, HasSubstr("step time"));
}

}  // namespace
}  // namespace ridgeline::simulate
