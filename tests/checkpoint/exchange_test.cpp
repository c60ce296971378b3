// The half of safetensors_exchange.py that runs here: reads in.safetensors of the folder $RIDGELINE_EXCHANGE, checks
// the values, and writes the same tensors to out.safetensors. Without the variable there is nothing to exchange.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "checkpoint/safetensors.h"

namespace ridgeline::checkpoint {
namespace {

template <typename Value>
void expect_counting(const SafetensorsFile& file, const char* name) {
  ASSERT_NE(file.find(name), nullptr) << name;
  const std::span<const std::byte> bytes = file.bytes(*file.find(name));
  ASSERT_GT(bytes.size(), 0u);
  for (size_t index = 0; index < bytes.size() / sizeof(Value); ++index) {
    Value value;
    std::memcpy(&value, bytes.data() + index * sizeof(Value), sizeof(Value));
    ASSERT_EQ(value, static_cast<Value>(index)) << name << " element " << index;
  }
}

TEST(Exchange, WithThePythonPackage) {
  const char* folder = std::getenv("RIDGELINE_EXCHANGE");
  if (folder == nullptr) GTEST_SKIP() << "run by safetensors_exchange.py";
  const SafetensorsFile file(Path(folder) / "in.safetensors");
  expect_counting<float>(file, "F32");
  expect_counting<double>(file, "F64");
  expect_counting<int64_t>(file, "I64");
  expect_counting<int32_t>(file, "I32");
  expect_counting<uint8_t>(file, "U8");

  std::vector<TensorEntry> entries = file.tensors();
  SafetensorsWriter writer(real_file_system(), Path(folder) / "out.safetensors",
                           plan_safetensors(std::move(entries), file.metadata()));
  for (const TensorEntry& entry : writer.header().tensors) writer.write(file.bytes(*file.find(entry.name)));
  writer.finish();
}

}  // namespace
}  // namespace ridgeline::checkpoint
