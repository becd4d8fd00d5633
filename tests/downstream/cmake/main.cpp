// Reads two rows, two images and a series, and prints what the API makes of them.
#include <cstdio>
#include <vector>

#include "kernelcore/host/api.h"

static_assert(KC_API_MAJOR == 1, "what is used here may have changed");

template <class T>
std::vector<T> read(std::FILE* file, int n) {
    std::vector<T> numbers(n);
    for (T& number : numbers) {
        double x;
        if (std::fscanf(file, "%lf", &x) != 1) return {};
        number = T(x);
    }
    return numbers;
}

template <class T>
void print(kc::api::kernels<T> k) {
    std::printf("%.17g %.17g\n", double(k.nngp), double(k.ntk));
}

template <class T>
int run(const char* path) {
    std::FILE* file = std::fopen(path, "r");
    if (!file) return 1;
    const int d = 5, height = 5, width = 4, channels = 2, image = height * width * channels;
    const std::vector<T> rows = read<T>(file, 3 * d), images = read<T>(file, 2 * image),
                         series = read<T>(file, 40);
    std::fclose(file);
    if (rows.empty() || images.empty() || series.empty()) return 1;
    for (int i = 0; i < 3; i++)
        print(kc::api::relu_rows(rows.data(), rows.data() + i * d, d, 3, T(1.5), T(0.25)));
    for (bool pool : {false, true}) {
        const kc::api::relu_network<T> network{height, width, channels, 3,
                                               2,      T(1.5), T(0.25), pool};
        std::vector<T> room(network.scratch());
        for (int i = 0; i < 2; i++)
            print(network(images.data(), images.data() + i * image, room.data()));
    }
    const auto dual = kc::api::relu_dual(T(2), T(3), T(-1));
    std::printf("%.17g %.17g\n", double(dual.value), double(dual.slope));
    const auto small = kc::api::eigenvalue(series.data(), 40, 1000, 30);
    std::printf("%.17g %d\n", double(small.value), small.exponent);
    return 0;
}

int main(int count, char** names) {
    return count < 2 || run<double>(names[1]) || run<float>(names[1]);
}
