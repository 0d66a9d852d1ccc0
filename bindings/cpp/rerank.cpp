// Re-ranks the candidates of a query:  rerank MODEL < candidates
// A candidate is a line: its id, then its features ("NaN" where one is missing). The best comes first in the output.
#include <algorithm>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "rankwood.hpp"

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: rerank MODEL < candidates");
  const auto model = rankwood::Model::load(argv[1]);
  auto workspace = model.workspace();  // a server keeps one per thread

  std::vector<std::string> ids;
  std::vector<float> features;  // of all candidates, one behind the other: one call is faster than many
  for (std::string line, word; std::getline(std::cin, line);) {
    std::istringstream words(line);
    words >> ids.emplace_back();
    while (words >> word) features.push_back(std::stof(word));
    if (features.size() != ids.size() * model.n_features()) {
      throw std::invalid_argument(ids.back() + " must have " + std::to_string(model.n_features()) + " features");
    }
  }

  std::vector<double> scores(ids.size());
  model.score(features.data(), scores.size(), scores.data(), workspace);

  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  for (const auto place : order) std::cout << ids[place] << ' ' << scores[place] << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
