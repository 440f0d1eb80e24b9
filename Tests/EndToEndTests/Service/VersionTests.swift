import FoundationEssentials
import Model
import TestSupport
import Testing

@Suite(.scratchFolder) struct VersionTests {
    private let scratch = ScratchFolder.current
    private static let sources: String =
        #filePath.dropLast("/Tests/EndToEndTests/Service/VersionTests.swift".count) + "/Sources/CVersion"

    /// The commit in `commit.h`; empty without the file, as in a plain `swift build`.
    private static var stampedCommit: String {
        guard let header = FileManager.default.contents(atPath: "\(sources)/commit.h") else { return "" }
        return String(decoding: header, as: UTF8.self).split(separator: "\"").dropFirst().first.map(String.init) ?? ""
    }

    @Test(arguments: ["patchbay", "patchbayd"])
    func `--version shows the version, and the commit of a stamped build`(name: String) async throws {
        let lines = try await Program.run(Executable.built(name), ["--version"], in: scratch)

        #expect(lines == [Version.text(commit: Self.stampedCommit)])
    }

    @Test func `the stamp has the commit, and a plus sign if files were changed`() async throws {
        let folder = try scratch.makeFolder("Sources")
        let script = """
            cd "$1"; cp "$2/stamp" "$2/version.c" .; cp -r "$2/include" .; printf 'commit.h\\nprogram\\n' >.gitignore
            git init -q; git add .; git -c user.name=a -c user.email=a@example.com commit -q -m one
            show() {
                ./stamp; printf '#include "CVersion.h"\\n#include <stdio.h>\\nint main(void) { puts(CVersion_commit()); }' |
                    cc -D_Nonnull= -Iinclude -o program version.c -x c -; ./program
            }
            git rev-parse --short HEAD; show; echo >>version.c; show
            """
        let lines = try await Program.run(
            "sh",
            ["-ec", script, "sh", folder, Self.sources],
            in: scratch,
            environment: ["HOME": scratch.path, "GIT_CONFIG_NOSYSTEM": "1"]
        )

        let commit = try #require(lines.first)
        #expect(lines == [commit, commit, "\(commit)+"])
    }
}
