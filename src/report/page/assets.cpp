#include "report/page/assets.h"

#include <string>

// The assembler takes the files in, whatever their size, in no time; cmake/Page.cmake says where they are and that this
// file depends on them.
#define EMBED(name, path)                                                                             \
  asm(".pushsection .rodata\n"                                                                        \
      ".global ridgeline_page_" #name "\nridgeline_page_" #name ":\n.incbin \"" path                  \
      "\"\n"                                                                                          \
      ".global ridgeline_page_" #name "_end\nridgeline_page_" #name "_end:\n.byte 0\n.popsection\n"); \
  extern "C" const char ridgeline_page_##name[], ridgeline_page_##name##_end[];
#define EMBEDDED(name) std::string_view(ridgeline_page_##name, ridgeline_page_##name##_end)

EMBED(page, RIDGELINE_PAGE_FOLDER "/page.html")
EMBED(style, RIDGELINE_PAGE_FOLDER "/page.css")
EMBED(format, RIDGELINE_PAGE_FOLDER "/format.js")
EMBED(tables, RIDGELINE_PAGE_FOLDER "/tables.js")
EMBED(figures, RIDGELINE_PAGE_FOLDER "/figures.js")
EMBED(runs, RIDGELINE_PAGE_FOLDER "/runs.js")
EMBED(predictions, RIDGELINE_PAGE_FOLDER "/predictions.js")
EMBED(studies, RIDGELINE_PAGE_FOLDER "/studies.js")
EMBED(scaling, RIDGELINE_PAGE_FOLDER "/scaling.js")
EMBED(main, RIDGELINE_PAGE_FOLDER "/page.js")
#ifdef RIDGELINE_ECHARTS_FOLDER
EMBED(library, RIDGELINE_ECHARTS_FOLDER "/dist/echarts.min.js")
EMBED(licence, RIDGELINE_ECHARTS_FOLDER "/LICENSE")
EMBED(notice, RIDGELINE_ECHARTS_FOLDER "/NOTICE")
#endif

namespace ridgeline::report {

PageAssets page_assets() {
  PageAssets assets{.page = EMBEDDED(page),
                    .style = EMBEDDED(style),
                    .scripts = {EMBEDDED(format), EMBEDDED(tables), EMBEDDED(figures), EMBEDDED(runs),
                                EMBEDDED(predictions), EMBEDDED(studies), EMBEDDED(scaling), EMBEDDED(main)},
                    .library = {},
                    .licence = {},
                    .notice = {}};
#ifdef RIDGELINE_ECHARTS_FOLDER
  assets.library = EMBEDDED(library);
  assets.licence = EMBEDDED(licence);
  assets.notice = EMBEDDED(notice);
#endif
  return assets;
}

}  // namespace ridgeline::report
