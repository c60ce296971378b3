#include "spec/shape_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "spec/machine.h"

namespace ridgeline::spec {
namespace {

TEST(ShapeRates, AreReadAsTheyAreWritten) {
  const ProductRate product = parse_product_rate("16 x 1024 x 64 x 2048: 1.25");
  EXPECT_EQ(product.batch, 16);
  EXPECT_EQ(product.m, 1024);
  EXPECT_EQ(product.n, 64);
  EXPECT_EQ(product.k, 2048);
  EXPECT_DOUBLE_EQ(product.factor, 1.25);
  EXPECT_EQ(to_string(product), "16 x 1024 x 64 x 2048: 1.25");
  const CollectiveRate collective = parse_collective_rate("all_reduce 8 (4 a node) 33554432: 0.5");
  EXPECT_EQ(collective.kind, "all_reduce");
  EXPECT_EQ(collective.ranks, 8);
  EXPECT_EQ(collective.per_node, 4);
  EXPECT_DOUBLE_EQ(collective.bytes, 33554432);
  EXPECT_EQ(to_string(collective), "all_reduce 8 (4 a node) 33554432: 0.5");
}

TEST(ShapeRates, WhatIsNoneIsRefused) {
  for (const char* text : {"", "1 x 2 x 3: 1", "1 x 2 x 3 x 4: 0", "1 x 2 x 3 x 4: nan", "0 x 2 x 3 x 4: 1",
                           "1 x 2 x 3 x 4: 1 and more", "1 x -2 x 3 x 4: 1"}) {
    EXPECT_THROW(parse_product_rate(text), InputError) << text;
  }
  for (const char* text : {"", "broadcast 8 (8 a node) 100: 1", "all_reduce 8 (8 a node) 0: 1",
                           "all_reduce 8 (8 a node) 100: -1", "all_reduce 8 8 100: 1"}) {
    EXPECT_THROW(parse_collective_rate(text), InputError) << text;
  }
}

TEST(ShapeRates, FaultsInAMachineFileNameTheLine) {
  try {
    parse_machine("[machine]\nname = \"x\"\nbase = \"selene\"\n[shapes]\nproducts = [\"1 x 2 x 3 x 4: 1000\"]\n",
                  "x.toml");
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("x.toml: shapes.products: '1 x 2 x 3 x 4: 1000' is no rate"));
  }
}

}  // namespace
}  // namespace ridgeline::spec
