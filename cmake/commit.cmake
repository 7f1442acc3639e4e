# Writes a source that names the commit from which this build is made, if that is not what it names already:
#   cmake -DSOURCES=DIR -DOUTPUT=FILE -P cmake/commit.cmake
# Runs with every build, so that no configuration is needed after a commit.
execute_process(COMMAND git -C "${SOURCES}" describe --always --dirty --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")  # an archive of the sources, or a machine without git
endif()
set(text "#include \"cli/build_facts.h\"\n\nconst char* const nsimplex::cli::kBuildCommit = \"${commit}\";\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
