// Makes a small SentencePiece model with byte fallback:  train_sentencepiece TEXT PREFIX
#include <sentencepiece_trainer.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      std::string("--input=") + argv[1] + " --model_prefix=" + argv[2] +
      " --vocab_size=350 --byte_fallback=true --hard_vocab_limit=false --minloglevel=3");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
