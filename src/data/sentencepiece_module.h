// Declares the interface of nsimplex_sentencepiece.so.

#pragma once

#include <cstddef>
#include <cstdint>

/// The interface of the module nsimplex_sentencepiece.so. Only plain types cross its border,
/// because it uses other libraries than the rest of the process: src/data/CMakeLists.txt says why
/// it is a module.
///
/// A function that returns `bool` returns false for a failure and then calls `fail` with a line of
/// text.
struct NsimplexSentencePiece {
  /// Receives text or token numbers; `sink` is the caller's pointer.
  using TextSink = void (*)(void* sink, const char* text, size_t size);
  using TokenSink = void (*)(void* sink, const int* tokens, size_t count);

  /// A processor for a serialized model, to be closed; null if it is not one.
  void* (*open)(const char* model, size_t size);
  void (*close)(void* processor);
  int64_t (*vocabulary)(const void* processor);
  int32_t (*end_of_text)(const void* processor);
  bool (*encode)(const void* processor, const char* text, size_t size, void* sink, TokenSink add,
                 TextSink fail);
  bool (*decode)(const void* processor, const int* tokens, size_t count, void* sink, TextSink add,
                 TextSink fail);
};

/// The only name that the module exports.
extern "C" const NsimplexSentencePiece* nsimplex_sentencepiece();
