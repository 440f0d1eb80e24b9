package import Testing

/// Gives each test of a suite a scratch folder, `ScratchFolder.current`, and the permission to start programs.
package struct ScratchFolderTrait: SuiteTrait, TestTrait, TestScoping {
    package let isRecursive = true

    package func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withScratchFolder { scratch in
            try await ScratchFolder.$ofTest.withValue(scratch) { try await function() }
        }
    }
}

extension Trait where Self == ScratchFolderTrait {
    package static var scratchFolder: Self { Self() }
}

extension ScratchFolder {
    @TaskLocal fileprivate static var ofTest: ScratchFolder?

    /// The folder of the running test. Its suite has the trait `.scratchFolder`.
    package static var current: ScratchFolder {
        guard let ofTest else { preconditionFailure("the suite has no trait .scratchFolder") }
        return ofTest
    }
}
