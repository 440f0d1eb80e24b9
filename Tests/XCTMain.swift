import Testing

/// The entry point of the tests, which has Swift Testing alone.
///
/// With this file the package manager does not look for XCTest's tests in the index, so `make test` builds without one on CI.
@main struct Runner {
    static func main() async {
        await Testing.__swiftPMEntryPoint() as Never
    }
}
