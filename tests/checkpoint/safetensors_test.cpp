#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/scratch_folder.h"
#include "core/error.h"

namespace ridgeline::checkpoint {
namespace {

using testing::HasSubstr;

std::string with_header(const std::string& header, const std::string& data = "") {
  std::string bytes(8, '\0');
  for (int byte = 0; byte < 8; ++byte) bytes[byte] = static_cast<char>(header.size() >> (8 * byte) & 0xff);
  return bytes + header + data;
}

SafetensorsHeader decode(const std::string& bytes) {
  return decode_header(std::as_bytes(std::span(bytes)), bytes.size(), "a.safetensors");
}

std::string refusal(const std::string& bytes) {
  return message_of<InputError>([&] { decode(bytes); });
}

TensorEntry entry(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  return {name, dtype, shape, 0, 0};
}

TEST(Safetensors, ReadsAFileOfThePythonPackage) {
  // safetensors.numpy.save({"b": [[1, 2]] of float32, "a": [1, 2, 3] of uint8}, {"k": "v"})
  const std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}} )";
  const std::string data("\x00\x00\x80\x3f\x00\x00\x00\x40\x01\x02\x03", 11);
  ScratchFolder folder;
  spill(folder.path() / "x", with_header(header, data));
  const SafetensorsFile file(folder.path() / "x");
  EXPECT_EQ(file.metadata(), (Metadata{{"k", "v"}}));
  ASSERT_EQ(file.tensors().size(), 2u);
  ASSERT_NE(file.find("b"), nullptr);
  EXPECT_EQ(file.find("b")->dtype, DType::F32);
  EXPECT_EQ(file.find("b")->shape, (std::vector<int64_t>{1, 2}));
  float values[2];
  std::memcpy(values, file.bytes(*file.find("b")).data(), sizeof(values));
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 2.0f);
  EXPECT_EQ(file.bytes(*file.find("a"))[2], std::byte{3});
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, WritesWhatItReads) {
  ScratchFolder folder;
  const SafetensorsHeader plan =
      plan_safetensors({entry("odd", DType::U8, {3}), entry("scalar", DType::F64, {}),
                        entry("empty", DType::F32, {0, 4}), entry("half", DType::BF16, {2, 2})},
                       {{"format", "pt"}});
  SafetensorsWriter writer(real_file_system(), folder.path() / "x", plan);
  std::string data = "01234567abcdefghXYZ";
  for (char& letter : data) writer.write(std::as_bytes(std::span(&letter, 1)));
  const FileDigest digest = writer.finish();

  const std::string bytes = slurp(folder.path() / "x");
  EXPECT_EQ(bytes.size(), digest.size);
  EXPECT_EQ(checksum_of(std::as_bytes(std::span(bytes))), digest.checksum);
  const SafetensorsFile file(folder.path() / "x");
  EXPECT_EQ(file.metadata(), plan.metadata);
  auto text = [&](const char* name) {
    const auto span = file.bytes(*file.find(name));
    return std::string(reinterpret_cast<const char*>(span.data()), span.size());
  };
  EXPECT_EQ(text("scalar"), "01234567");
  EXPECT_EQ(text("half"), "abcdefgh");
  EXPECT_EQ(text("odd"), "XYZ");
  EXPECT_EQ(text("empty"), "");
  for (const TensorEntry& tensor : file.tensors()) {
    EXPECT_EQ((bytes.size() - data.size() + tensor.begin) % element_size(tensor.dtype), 0u) << tensor.name;
  }
}

TEST(Safetensors, WriterInsistsOnAllBytes) {
  ScratchFolder folder;
  const std::string data = "0123";
  SafetensorsWriter writer(real_file_system(), folder.path() / "x", plan_safetensors({entry("a", DType::U8, {3})}, {}));
  EXPECT_THROW(writer.write(std::as_bytes(std::span(data))), InternalError);
  EXPECT_THROW(writer.finish(), InternalError);
}

TEST(Safetensors, PlanRefusesWhatTheFormatCannotHold) {
  EXPECT_THAT(message_of<InputError>([] { plan_safetensors({entry("__metadata__", DType::U8, {1})}, {}); }),
              HasSubstr("reserves"));
  EXPECT_THAT(
      message_of<InputError>([] { plan_safetensors({entry("a", DType::U8, {1}), entry("a", DType::U8, {1})}, {}); }),
      HasSubstr("\"a\" is written twice"));
  EXPECT_THAT(message_of<InputError>([] { plan_safetensors({entry("a", DType::F64, {1LL << 40, 1LL << 30})}, {}); }),
              HasSubstr("too large"));
  EXPECT_THAT(message_of<InputError>([] { plan_safetensors({entry("a\xff", DType::U8, {1})}, {}); }),
              HasSubstr("UTF-8"));
}

TEST(Safetensors, RefusesDamagedHeads) {
  EXPECT_THAT(refusal("1234567"), HasSubstr("too short"));
  EXPECT_THAT(refusal(std::string(8, '\xff')), HasSubstr("not a safetensors file, or cut short"));
  EXPECT_THAT(refusal(with_header("{}").substr(0, 9)), HasSubstr("cut short"));
  EXPECT_THAT(refusal(with_header("{")), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(with_header("[]")), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(with_header("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}")),
              HasSubstr("nests deeper"));
  EXPECT_THAT(refusal(with_header(R"({"__metadata__":{"k":1}})")), HasSubstr("expected a string"));
  EXPECT_TRUE(decode(with_header("{}")).tensors.empty());
}

TEST(Safetensors, RefusesHostileTensors) {
  auto one = [](const std::string& tensor, const std::string& data = "12345678") {
    return refusal(with_header("{\"w\":" + tensor + "}", data));
  };
  EXPECT_THAT(one(R"(3)"), HasSubstr("a.safetensors: tensor \"w\""));
  EXPECT_THAT(one(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"), HasSubstr("dtype \"F31\", expected one of"));
  EXPECT_THAT(one(R"({"shape":[2],"data_offsets":[0,8]})"), HasSubstr("\"dtype\" is missing"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("\"shape\" is [-2]"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), HasSubstr("whole numbers"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"), HasSubstr("too large"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,8]})"), HasSubstr("too large"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})"), HasSubstr("too large"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), HasSubstr("1 data_offsets"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), HasSubstr("8..0"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})"), HasSubstr("inside the file's 8 bytes"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]})"), HasSubstr("data_offsets"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"), HasSubstr("span 8 bytes, expected 4"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"),
              HasSubstr("8 bytes of data, but the tensors take 4"));
  EXPECT_THAT(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), HasSubstr("hole"));
}

TEST(Safetensors, RefusesOverlapsHolesAndDuplicates) {
  auto two = [](const std::string& first, const std::string& second, const char* name = "b") {
    return refusal(with_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first + R"(},")" + name +
                                   R"(":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                               "12345678"));
  };
  EXPECT_THAT(two("[0,4]", "[0,4]"), HasSubstr("tensor \"b\" begins at byte 0 of the data, expected 4"));
  EXPECT_THAT(two("[0,4]", "[2,6]"), HasSubstr("they overlap"));
  EXPECT_THAT(two("[4,8]", "[0,4]", "a"), HasSubstr("\"a\" stands there twice"));
}

}  // namespace
}  // namespace ridgeline::checkpoint
