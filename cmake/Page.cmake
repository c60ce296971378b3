# What the HTML page of `ridgeline report` embeds: the files of src/report/page, and the chart library where it is
# installed (scripts/set-up does so from npm, into .setup/page).
set(RIDGELINE_PAGE_PACKAGES "" CACHE PATH "node_modules folder with echarts; empty looks in .setup/page")
set(page_packages ${RIDGELINE_PAGE_PACKAGES})
if(NOT page_packages)
  set(page_packages ${CMAKE_SOURCE_DIR}/.setup/page/node_modules)
endif()
set(page_folder ${CMAKE_SOURCE_DIR}/src/report/page)
file(GLOB page_files CONFIGURE_DEPENDS ${page_folder}/*.html ${page_folder}/*.css ${page_folder}/*.js)
set(page_definitions RIDGELINE_PAGE_FOLDER="${page_folder}")
# Looked for anew in each build, so that a set-up which installs it later is noticed.
file(GLOB page_library CONFIGURE_DEPENDS ${page_packages}/echarts/dist/echarts.min.js)
if(page_library)
  list(APPEND page_definitions RIDGELINE_ECHARTS_FOLDER="${page_packages}/echarts")
  list(APPEND page_files ${page_library} ${page_packages}/echarts/LICENSE
    ${page_packages}/echarts/NOTICE)
else()
  message(STATUS "No chart library in ${page_packages}: `ridgeline report --output` will say so. scripts/set-up installs it.")
endif()
set_source_files_properties(${page_folder}/assets.cpp PROPERTIES COMPILE_DEFINITIONS "${page_definitions}"
  OBJECT_DEPENDS "${page_files}")
