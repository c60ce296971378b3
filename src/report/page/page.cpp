#include "report/page/page.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "report/page/assets.h"

namespace ridgeline::report {
namespace {

// Text between tags.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    switch (character) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += character;
    }
  }
  return result;
}

// JSON that ends no script element: these characters stand in JSON's strings alone, where they may be written so.
std::string inert(const nlohmann::json& data) {
  const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string result;
  result.reserve(text.size() + text.size() / 16);
  for (const char character : text) {
    switch (character) {
      case '<':
        result += "\\u003c";
        break;
      case '>':
        result += "\\u003e";
        break;
      case '&':
        result += "\\u0026";
        break;
      default:
        result += character;
    }
  }
  return result;
}

std::string script(std::string_view text) {
  RIDGELINE_ASSERT(text.find("</script") == text.npos && text.find("<!--") == text.npos);
  return fmt::format("<script>\n{}\n</script>\n", text);
}

// Puts `value` where the template has `<!-- name -->`.
void fill(std::string& page, const char* name, std::string_view value) {
  const std::string mark = fmt::format("<!-- {} -->", name);
  const size_t place = page.find(mark);
  RIDGELINE_ASSERT(place != page.npos);
  page.replace(place, mark.size(), value);
}

}  // namespace

double rounded(double value) { return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr); }

std::string page_html(const std::string& title, const nlohmann::json& data) {
  const PageAssets assets = page_assets();
  if (assets.library.empty()) {
    throw Failure(
        "this ridgeline was built without the chart library that a page embeds: run scripts/set-up, which installs it "
        "from npm and builds again");
  }
  std::string page(assets.page);
  // What comes from outside is filled in last, so that nothing is looked for in it.
  fill(page, "style", fmt::format("<style>\n{}</style>", assets.style));
  fill(page, "library", script(assets.library));
  std::string scripts;
  for (const std::string_view text : assets.scripts) scripts += script(text);
  fill(page, "scripts", scripts);
  fill(page, "licence", escaped(fmt::format("{}\n{}", assets.notice, assets.licence)));
  fill(page, "data", fmt::format("<script type=\"application/json\" id=\"data\">{}</script>", inert(data)));
  fill(page, "title", escaped(title));
  return page;
}

}  // namespace ridgeline::report
