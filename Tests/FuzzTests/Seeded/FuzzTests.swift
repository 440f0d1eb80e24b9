import Foundation
import TestSupport
import Testing

/// The short form of `make fuzz`: the same promises with fixed inputs.
@Suite struct FuzzTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Corpus")

    /// Returns valid inputs and inputs that once broke a promise.
    private func seeds(for target: FuzzTarget) throws -> [(name: String, input: [UInt8])] {
        let folder = Self.corpus.appending(path: target.rawValue)
        return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map { name in
            (name, Array(try Data(contentsOf: folder.appending(path: name))))
        }
    }

    @Test(arguments: FuzzTarget.allCases)
    func `a parser keeps its promises for every input`(target: FuzzTarget) throws {
        let seeds = try seeds(for: target)
        try #require(!seeds.isEmpty)
        for seed in seeds {
            #expect(throws: Never.self, "\(seed.name)") { try target.check(seed.input) }
        }
        var random = SeededGenerator(seed: 7)
        for number in 0..<1_500 {
            var input = seeds[number % seeds.count].input
            var choices = Choices((0..<64).map { _ in UInt8.random(in: .min ... .max, using: &random) })
            for _ in 0...choices.number(below: 6) { choices.edit(&input) }
            do { try target.check(input) } catch {
                Issue.record("\(error), by \(Data(input).base64EncodedString()) in base64")
                return
            }
        }
    }

    @Test func `every corpus folder has a fuzz target`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)

        #expect(Set(folders) == Set(FuzzTarget.allCases.map(\.rawValue)))
    }
}
