// Search in a B+tree: a workgroup for each query, a work-item for each key of a node. Level after level the one whose
// keys enclose the query says which child is next; in the leaf the one that has the key says where the record is.
#include "nine.h"

#include <climits>

constexpr int order = 256, keys = 100000, leaf_keys = 128, fanout = 128, queries = 250;

struct Node {
    int indices[order + 1];
    int keys[order + 1];
};

__global__ void find(int height, const Node* nodes, int node_count, const int* records, int* current, int* next,
                     const int* wanted, int* answers) {
    int item = threadIdx.x, query = blockIdx.x;
    for (int level = 0; level < height; ++level) {
        const Node& node = nodes[current[query]];
        if (node.keys[item] <= wanted[query] && node.keys[item + 1] > wanted[query]) {
            if (nodes[next[query]].indices[item] < node_count) {
                next[query] = nodes[next[query]].indices[item];
            }
        }
        __syncthreads();
        if (item == 0) {
            current[query] = next[query];
        }
        __syncthreads();
    }
    if (nodes[current[query]].keys[item] == wanted[query]) {
        answers[query] = records[nodes[current[query]].indices[item]];
    }
}

__global__ void find_range(int height, const Node* nodes, int node_count, int* current, int* next, int* last_current,
                           int* last_next, const int* first, const int* last, int* starts, int* lengths) {
    int item = threadIdx.x, query = blockIdx.x;
    for (int level = 0; level < height; ++level) {
        const Node& node = nodes[current[query]];
        if (node.keys[item] <= first[query] && node.keys[item + 1] > first[query]) {
            if (nodes[next[query]].indices[item] < node_count) {
                next[query] = nodes[next[query]].indices[item];
            }
        }
        const Node& other = nodes[last_current[query]];
        if (other.keys[item] <= last[query] && other.keys[item + 1] > last[query]) {
            if (nodes[last_next[query]].indices[item] < node_count) {
                last_next[query] = nodes[last_next[query]].indices[item];
            }
        }
        __syncthreads();
        if (item == 0) {
            current[query] = next[query];
            last_current[query] = last_next[query];
        }
        __syncthreads();
    }
    if (nodes[current[query]].keys[item] == first[query]) {
        starts[query] = nodes[current[query]].indices[item];
    }
    __syncthreads();
    if (nodes[last_current[query]].keys[item] == last[query]) {
        lengths[query] = nodes[last_current[query]].indices[item] - starts[query] + 1;
    }
}

// Key and record of the n-th entry.
static int key_of(int n) { return 3 * n + 1; }
static int record_of(int n) { return n ^ 0x15555; }

// A level of nodes over entries with ascending keys; a node's unused keys enclose nothing.
static void add_level(std::vector<Node>& nodes, const std::vector<int>& least, int first_index, int children,
                      std::vector<int>& least_of_nodes) {
    least_of_nodes.clear();
    for (size_t from = 0; from < least.size(); from += children) {
        Node node;
        for (int slot = 0; slot <= order; ++slot) {
            size_t entry = from + slot;
            bool used = slot < children && entry < least.size();
            node.keys[slot] = used ? least[entry] : INT_MAX;
            node.indices[slot] = used ? first_index + static_cast<int>(entry) : INT_MAX;
        }
        nodes.push_back(node);
        least_of_nodes.push_back(least[from]);
    }
}

int main() {
    std::vector<int> least(keys), records(keys), upper;
    for (int n = 0; n < keys; ++n) {
        least[n] = key_of(n);
        records[n] = record_of(n);
    }
    std::vector<Node> nodes;
    add_level(nodes, least, 0, leaf_keys, upper);
    int height = 0, first_node = 0;
    while (upper.size() > 1) {
        int next_first = static_cast<int>(nodes.size());
        least = upper;
        add_level(nodes, least, first_node, fanout, upper);
        first_node = next_first;
        ++height;
    }
    const int root = static_cast<int>(nodes.size()) - 1, node_count = static_cast<int>(nodes.size());

    Numbers numbers(4);
    std::vector<int> wanted(queries), first(queries), last(queries), starts(queries), lengths(queries);
    std::vector<int> expected(queries, -1);
    for (int query = 0; query < queries; ++query) {
        int from = numbers.below(keys - 1000), length = 1 + numbers.below(1000), which = numbers.below(keys);
        // Every eighth key is not there.
        bool missing = query % 8 == 7;
        wanted[query] = key_of(which) + (missing ? 1 : 0);
        if (!missing) expected[query] = record_of(which);
        first[query] = key_of(from);
        last[query] = key_of(from + length - 1);
        starts[query] = from;
        lengths[query] = length;
    }

    Node* device_nodes = to_device(nodes);
    int* device_records = to_device(records);
    int* device_wanted = to_device(wanted);
    int* device_answers = to_device(std::vector<int>(queries, -1));
    const std::vector<int> roots(queries, root);
    int* current = to_device(roots);
    int* next = to_device(roots);
    find<<<queries, order>>>(height, device_nodes, node_count, device_records, current, next, device_wanted,
                             device_answers);
    finished();
    bool ok = matches("records", take_back(device_answers, queries), expected);
    HIP_CHECK(hipFree(current));
    HIP_CHECK(hipFree(next));
    HIP_CHECK(hipFree(device_wanted));
    HIP_CHECK(hipFree(device_records));

    current = to_device(roots);
    next = to_device(roots);
    int* last_current = to_device(roots);
    int* last_next = to_device(roots);
    int* device_first = to_device(first);
    int* device_last = to_device(last);
    int* device_starts = to_device(std::vector<int>(queries, -1));
    int* device_lengths = to_device(std::vector<int>(queries, -1));
    find_range<<<queries, order>>>(height, device_nodes, node_count, current, next, last_current, last_next,
                                   device_first, device_last, device_starts, device_lengths);
    finished();
    ok &= matches("starts", take_back(device_starts, queries), starts);
    ok &= matches("lengths", take_back(device_lengths, queries), lengths);
    for (int* used : {current, next, last_current, last_next, device_first, device_last}) HIP_CHECK(hipFree(used));
    HIP_CHECK(hipFree(device_nodes));
    return finish(ok);
}
