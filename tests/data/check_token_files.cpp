// check_token_files FROM TO: reads a token file and writes it again, document by document, as check_token_files.py
// asks.
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/token_file.h"
#include "data/token_writer.h"

int main(int count, char** arguments) {
  using namespace ridgeline::data;
  if (count != 3) return 2;
  try {
    const TokenFile from(arguments[1]);
    TokenWriter to(arguments[2], from.type());
    for (int64_t index = 0; index < from.documents(); ++index) {
      const auto range = from.document(index);
      std::vector<int64_t> tokens(static_cast<size_t>(range.size()));
      from.read(range.begin, tokens);
      to.add(std::span<const int64_t>(tokens));
      to.end_document();
    }
    to.finish();
  } catch (const ridgeline::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
