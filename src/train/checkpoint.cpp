// Writes and reads checkpoints and model files of language models.

#include "train/checkpoint.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>

#include "io/input_file.h"
#include "io/output_file.h"
#include "support/error.h"

namespace nsimplex::training {

// Token files are written only if the run reads some: runs on texts write the format of version
// 0.1.
static void to_json(nlohmann::json& json, const TextRecord& text) {
  json = {{"sources", text.sources},
          {"glob", text.glob},
          {"tokens", text.tokens},
          {"fingerprint", text.fingerprint}};
  if (text.token_files.empty()) return;
  json["token_files"] = text.token_files;
  json["validation_files"] = text.validation_files;
}

static void from_json(const nlohmann::json& json, TextRecord& text) {
  json.at("sources").get_to(text.sources);
  json.at("glob").get_to(text.glob);
  json.at("tokens").get_to(text.tokens);
  json.at("fingerprint").get_to(text.fingerprint);
  if (!json.contains("token_files")) return;
  json.at("token_files").get_to(text.token_files);
  json.at("validation_files").get_to(text.validation_files);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Progress, step, position, loss_sum, loss_steps, auxiliary_sum)

namespace {

using SortedJson = nlohmann::json;

constexpr char kFormat[] = "format", kState[] = "state";
// The kind of a file, followed by the number of its format. Format 1 has no checksums and stays
// readable.
constexpr std::string_view kCheckpoint = "nsimplex checkpoint ", kModel = "nsimplex model ";
constexpr std::string_view kNewest = "2", kWithoutChecksums = "1";
constexpr std::string_view kWeights = "model.", kOptimizer = "optimizer.";
constexpr char kGenerator[] = "generator", kTokenizer[] = "tokenizer";
constexpr char kNoTokenizer[] = "none";  // as the state's kTokenizer

std::string join(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

void append(std::vector<io::NamedTensor>& to, std::string_view prefix,
            const std::vector<io::NamedTensor>& from) {
  for (const io::NamedTensor& each : from)
    to.push_back({std::string(prefix) + each.name, each.tensor});
}

// The tensors under a prefix, without the prefix.
std::vector<io::NamedTensor> part(const io::Safetensors& file, std::string_view prefix) {
  std::vector<io::NamedTensor> found;
  for (const io::NamedTensor& each : file.tensors) {
    if (each.name.starts_with(prefix))
      found.push_back({each.name.substr(prefix.size()), each.tensor});
  }
  return found;
}

at::Tensor bytes_tensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::string tensor_bytes(const at::Tensor* tensor) {
  if (tensor == nullptr) return "";
  return {static_cast<const char*>(tensor->const_data_ptr()), tensor->nbytes()};
}

std::string invalid(const std::string& path, const std::string& why) {
  return "cannot read " + path + ": " + why;
}

std::string newest(std::string_view kind) { return std::string(kind).append(kNewest); }

// Whether the file is of that kind. Files of the newest format have checksums.
bool is_kind(const io::Safetensors& file, std::string_view kind, const std::string& path) {
  const auto found = file.metadata.find(kFormat);
  if (found == file.metadata.end() || !found->second.starts_with(kind)) return false;
  const std::string_view number = std::string_view(found->second).substr(kind.size());
  if (number == kNewest && !file.checked)
    throw InputError(invalid(path, "damaged: its checksums are missing"));
  if (number != kNewest && number != kWithoutChecksums) {
    throw InputError(
        invalid(path, "its format '" + found->second + "' is not known to this version"));
  }
  return true;
}

// The JSON object in the header, with its fields converted by `convert`.
template <class Convert>
void read_state(const io::Safetensors& file, const std::string& path, Convert&& convert) {
  try {
    convert(SortedJson::parse(file.metadata.at(kState)));
  } catch (const InputError& error) {
    throw InputError(invalid(path, error.what()));
  } catch (const std::out_of_range&) {
    throw InputError(invalid(path, "the header has no state"));
  } catch (const SortedJson::exception& error) {
    throw InputError(invalid(path, std::string("the header's state is damaged: ") + error.what()));
  }
}

// Records in a state that the run has no tokenizer. Other states have no such field.
SortedJson with_tokenizer(SortedJson state, const Checkpoint& checkpoint) {
  if (checkpoint.without_tokenizer) state[kTokenizer] = kNoTokenizer;
  return state;
}

bool is_without_tokenizer(const SortedJson& state) {
  return state.contains(kTokenizer) && state.at(kTokenizer) == kNoTokenizer;
}

LanguageModelOptions model_options(const SortedJson& state) {
  return language_model_options(state.at("model").get<std::map<std::string, std::string>>());
}

// Rejects weights that do not fit the model, before the model is built. The header alone determines
// the model's size, and a header may state anything.
void require_fits(const LanguageModelOptions& o, const std::vector<io::NamedTensor>& weights,
                  const std::string& path) {
  constexpr std::string_view kBlocks = "blocks.";
  std::set<std::string_view> blocks;
  int64_t widest = 0;
  const at::Tensor* embedding = nullptr;
  for (const io::NamedTensor& each : weights) {
    const std::string_view name = each.name;
    if (name == "embedding.weight") embedding = &each.tensor;
    if (name.starts_with(kBlocks)) blocks.insert(name.substr(0, name.find('.', kBlocks.size())));
    for (const int64_t size : each.tensor.sizes()) widest = std::max(widest, size);
  }
  const auto require = [&](bool fits, const char* option) {
    if (!fits) {
      throw InputError(invalid(
          path,
          std::string("its option ").append(option).append(" does not belong to its weights")));
    }
  };
  const bool is_matrix = embedding && embedding->dim() == 2;
  require(is_matrix && embedding->size(0) == o.vocabulary, "vocabulary");
  require(is_matrix && embedding->size(1) == o.dim, "dim");
  require(std::ssize(blocks) == o.layers, "layers");
  require(o.heads <= o.dim && o.kv_heads <= o.dim, "heads");
  require(!(o.mlp_ratio * static_cast<double>(o.dim) > static_cast<double>(widest) + 1),
          "mlp_ratio");
}

Checkpoint to_checkpoint(const io::Safetensors& file, const std::string& path) {
  Checkpoint checkpoint;
  read_state(file, path, [&](const SortedJson& state) {
    checkpoint.model = model_options(state);
    checkpoint.training = state.at("training").get<TrainingOptions>();
    checkpoint.text = state.at("text").get<TextRecord>();
    checkpoint.progress = state.at("progress").get<Progress>();
    checkpoint.without_tokenizer = is_without_tokenizer(state);
  });
  checkpoint.weights = part(file, kWeights);
  require_fits(checkpoint.model, checkpoint.weights, path);
  checkpoint.optimizer = part(file, kOptimizer);
  const at::Tensor* generator = file.find(kGenerator);
  if (generator == nullptr) throw InputError(invalid(path, "it has no generator state"));
  checkpoint.generator = generator->clone();
  checkpoint.tokenizer = tensor_bytes(file.find(kTokenizer));
  return checkpoint;
}

}  // namespace

void write_checkpoint(const std::string& folder, const Checkpoint& checkpoint) {
  const SortedJson state = with_tokenizer({{"model", to_map(checkpoint.model)},
                                           {"training", checkpoint.training},
                                           {"text", checkpoint.text},
                                           {"progress", checkpoint.progress}},
                                          checkpoint);
  io::Safetensors file;
  file.metadata = {{kFormat, newest(kCheckpoint)}, {kState, state.dump()}};
  append(file.tensors, kWeights, checkpoint.weights);
  append(file.tensors, kOptimizer, checkpoint.optimizer);
  file.tensors.push_back({kGenerator, checkpoint.generator});
  if (!checkpoint.tokenizer.empty())
    file.tensors.push_back({kTokenizer, bytes_tensor(checkpoint.tokenizer)});
  io::write_safetensors(join(folder, kCheckpointFile), file);
  write_model(folder, checkpoint);
}

void write_model(const std::string& folder, const Checkpoint& checkpoint) {
  const SortedJson state = with_tokenizer(
      {{"model", to_map(checkpoint.model)}, {"step", checkpoint.progress.step}}, checkpoint);
  io::write_safetensors(join(folder, kModelFile),
                        {checkpoint.weights, {{kFormat, newest(kModel)}, {kState, state.dump()}}});
  if (!checkpoint.tokenizer.empty())
    io::write_text(join(folder, kTokenizerFile), checkpoint.tokenizer);
}

Checkpoint read_checkpoint(const std::string& path) {
  const io::Safetensors file = io::read_safetensors(path);
  if (!is_kind(file, kCheckpoint, path))
    throw InputError(invalid(path, "not a checkpoint of this program"));
  return to_checkpoint(file, path);
}

SavedModel read_model(const std::string& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::string name = folder ? join(path, kCheckpointFile) : path;
  const io::Safetensors file = io::read_safetensors(name);
  if (is_kind(file, kCheckpoint, name)) {
    Checkpoint checkpoint = to_checkpoint(file, name);
    return {checkpoint.model,     std::move(checkpoint.weights), checkpoint.progress.step,
            checkpoint.tokenizer, checkpoint.without_tokenizer,  checkpoint.text};
  }
  if (!is_kind(file, kModel, name)) throw InputError(invalid(name, "not a model of this program"));
  SavedModel model;
  read_state(file, name, [&](const SortedJson& state) {
    model.options = model_options(state);
    model.step = state.at("step").get<int64_t>();
    model.without_tokenizer = is_without_tokenizer(state);
  });
  model.weights = file.tensors;
  require_fits(model.options, model.weights, name);
  const auto tokenizer = std::filesystem::path(path).parent_path() / kTokenizerFile;
  if (std::filesystem::exists(tokenizer)) model.tokenizer = io::read_text(tokenizer);
  return model;
}

void copy_into(const std::vector<io::NamedTensor>& tensors,
               const std::vector<io::NamedTensor>& values, const std::string& origin) {
  const at::NoGradGuard no_grad;
  if (values.size() != tensors.size()) {
    throw InputError(
        invalid(origin, c10::str("expected ", tensors.size(), " tensors, got ", values.size())));
  }
  std::unordered_map<std::string_view, const at::Tensor*> by_name;
  for (const io::NamedTensor& value : values) by_name.emplace(value.name, &value.tensor);
  for (const io::NamedTensor& each : tensors) {
    const auto found = by_name.find(each.name);
    const at::Tensor* value = found == by_name.end() ? nullptr : found->second;
    if (value == nullptr) throw InputError(invalid(origin, "it has no tensor " + each.name));
    if (value->sizes() != each.tensor.sizes()) {
      throw InputError(invalid(origin, c10::str("tensor ", each.name, ": expected shape ",
                                                each.tensor.sizes(), ", got ", value->sizes())));
    }
    each.tensor.copy_(*value);
  }
}

}  // namespace nsimplex::training
