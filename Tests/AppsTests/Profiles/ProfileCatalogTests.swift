import FoundationEssentials
import Model
import TOML
import TestSupport
import Testing

@testable import Apps

@Suite(.scratchFolder) struct ProfileCatalogTests {
    private let scratch = ScratchFolder.current
    private static let root = TestSupportFolder.package
    private static let shipped = ["app-debug", "debugbridge", "devicekit", "mobilecli", "simlock", "webdriveragent"]

    private static func text(_ name: String, title: String = "Shop") -> String {
        """
        name = "\(name)"
        title = "\(title)"
        ports = [8080]
        [[recognition]]
        path = "/"
        json = { type = "object", required = ["shop"] }
        [[tool]]
        name = "home"
        description = "Returns the page."
        path = "/"

        """
    }

    /// Loads profiles of a folder with these files.
    private static func load(
        _ files: [String: String],
        in scratch: ScratchFolder
    ) throws -> Result<ProfileCatalog, TOMLError> {
        let folder = try scratch.makeFolder("profiles")
        for (name, text) in files { try scratch.write(text, to: "profiles/\(name)") }
        return Result { () throws(TOMLError) in
            try ProfileCatalog(installedFolder: "\(root)/config/profiles", userFolder: folder)
        }
    }

    @Test func `the installed profiles are loaded, in the order of their names`() throws {
        let catalog = try ProfileCatalog(installedFolder: "\(Self.root)/config/profiles", userFolder: nil)

        #expect(catalog.profiles.map(\.name) == Self.shipped)
        #expect(catalog.entries.map(\.summary.file) == Self.shipped.map { "\(Self.root)/config/profiles/\($0).toml" })
        #expect(catalog.entries[0].summary.toolCount == 6 && catalog.entries[0].summary.ports == [9_876])
    }

    @Test func `a user's profile is added, and replaces an installed one with the same name`() async throws {
        let files = [
            "shop.toml": Self.text("shop"), "mine.toml": Self.text("app-debug", title: "Mine"), "notes.txt": "no",
            ".hidden.toml": "no",
        ]
        let catalog = try Self.load(files, in: scratch).get()

        #expect(catalog.profiles.map(\.name) == (Self.shipped + ["shop"]).sorted())
        #expect(catalog.profiles.first?.title == "Mine")
        #expect(catalog.entries[0].file.hasSuffix("/profiles/mine.toml"))
    }

    @Test(
        arguments: [
            (
                ["a.toml": Self.text("shop").replacing("ports", with: "prots")],
                "/profiles/a.toml:3:1: prots: there is no such key; did you mean \"ports\"?"
            ),
            (["a.toml": "[!]"], "/profiles/a.toml:1:2: ! cannot be here"),
            (
                ["a.toml": Self.text("shop"), "b.toml": Self.text("shop")],
                "/profiles/b.toml: name is \"shop\", which is the name of "
            ),
        ] as [([String: String], String)]
    )
    func `an invalid file is an error with its place and a suggestion`(
        files: [String: String],
        message: String
    ) async throws {
        guard case .failure(let error) = try Self.load(files, in: scratch) else {
            Issue.record("the files are accepted")
            return
        }
        #expect(error.description.contains(message), "\(error)")
    }

    @Test func `every invalid file has its own line`() async throws {
        let files = ["a.toml": "titel = 1", "b.toml": Self.text("shop"), "c.toml": "[!]"]
        guard case .failure(let error) = try Self.load(files, in: scratch) else {
            Issue.record("the files are accepted")
            return
        }
        let lines = error.description.split(separator: "\n")
        #expect(lines.count == 2 && lines[0].contains("a.toml:1:1: titel") && lines[1].contains("c.toml:1:2: "))
    }

    @Test func `the example of docs/profiles.md is valid`() throws {
        let page = try String(contentsOf: URL(filePath: "\(Self.root)/docs/profiles.md"), encoding: .utf8)
        let example = try #require(page.firstMatch(of: /```toml\n(?<text>[^`]*)```/)?.text)

        let profile = try Profile(parsing: String(example), file: "example.toml")
        #expect(profile.tools.map(\.name) == ["screenshot", "add_to_cart"])
    }

    @Test func `folders that do not exist have no profiles`() throws {
        #expect(try ProfileCatalog(installedFolder: nil, userFolder: "/none").profiles.isEmpty)
    }

    @Test func `the installed profiles are found beside the folder of the executable, or in the source tree`()
        async throws
    {
        _ = try scratch.makeFolder("usr/share/patchbay/profiles")
        _ = try scratch.makeFolder("tree/config/profiles")
        let path = scratch.path

        #expect(
            ProfileCatalog.installedFolder(executable: "\(path)/usr/bin/patchbayd")
                == "\(path)/usr/share/patchbay/profiles"
        )
        #expect(
            ProfileCatalog.installedFolder(executable: "\(path)/tree/.build/x/debug/patchbayd")
                == "\(path)/tree/config/profiles"
        )
        #expect(ProfileCatalog.installedFolder(executable: "\(path)/opt/bin/patchbayd") == nil)
    }

    @Test func `the user's profiles are next to the configuration file`() async throws {
        let folder = try scratch.makeFolder("etc/profiles")
        let file = "\(scratch.path)/etc/patchbay.toml"

        #expect(ProfileCatalog.userFolder(file: file, searchPaths: []) == folder)
        #expect(ProfileCatalog.userFolder(file: nil, searchPaths: ["/none/patchbay.toml", file]) == folder)
        #expect(ProfileCatalog.userFolder(file: "/none/patchbay.toml", searchPaths: [file]) == nil)
    }
}
