import Foundation
import Testing

/// The walls of the house: which folder may import what. The compiler refuses an upward import, but lets a transitive one
/// pass (also with `--explicit-target-dependency-import-check error`), so this compares the import lines with the table.
@Suite struct WallTests {
    static let system: Set<String> = ["FoundationEssentials", "Glibc", "Synchronization"]
    static let table: [String: Set<String>] = [
        "Model": [],
        "JSON": [],
        "SystemIO": ["CLinux", "Model", "Logging"],
        "Discovery": ["CAvahi", "CLinux", "Model", "Logging", "ServiceLifecycle"],
        "Devices": ["CLinux", "CUsbmuxd", "Model", "SystemIO", "Logging", "ServiceLifecycle"],
        "Probing": ["Model", "SystemIO", "Logging", "ServiceLifecycle", "NIOCore", "NIOPosix", "NIOHTTP1"],
        "Registry": ["Model"],
        "Tunnels": ["CLinux", "Model", "SystemIO", "Logging", "ServiceLifecycle"],
        "AccessControl": ["CLinux", "CSQLite", "Model", "SystemIO", "Crypto", "Logging", "ServiceLifecycle"],
        "QR": ["CQRencode"],
        "Images": ["CImages", "SystemIO"],
        "API": [
            "JSON", "MCP", "Model", "AccessControl", "QR", "Registry", "SystemIO", "Tunnels", "HTTPTypes",
            "Hummingbird",
            "HummingbirdCore", "Logging", "NIOCore", "NIOExtras", "NIOHTTP1", "NIOHTTPTypesHTTP1", "NIOPosix",
            "ServiceLifecycle",
        ],
        "MCP": [
            "Images", "JSON", "Model", "AccessControl", "Registry", "SystemIO", "Tunnels", "Crypto", "Logging",
            "ServiceLifecycle",
        ],
        "UsbmuxServer": ["Devices", "Model", "SystemIO", "Tunnels", "Logging", "ServiceLifecycle"],
        "Client": ["JSON", "Model", "NIOCore", "NIOPosix", "NIOHTTP1"],
        "patchbayd": [
            "API", "CLinux", "Devices", "Discovery", "UsbmuxServer", "Images", "MCP", "Model", "AccessControl",
            "Probing",
            "Registry", "SystemIO", "Tunnels", "ArgumentParser", "Logging", "ServiceLifecycle", "TOMLKit",
            "UnixSignals",
        ],
        "patchbay": ["ArgumentParser", "Client", "JSON", "Model", "QR", "SystemIO"],
    ]

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func files(in folder: String) throws -> [URL] {
        let folder = root.appending(path: folder)
        return try #require(FileManager.default.subpaths(atPath: folder.path))
            .filter { $0.hasSuffix(".swift") }.map { folder.appending(path: $0) }
    }

    @Test(arguments: table.keys.sorted())
    func `a folder imports only what stands in its line of the table`(module: String) throws {
        let files = try Self.files(in: "Sources/\(module)")
        #expect(!files.isEmpty)
        for file in files {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index <= 1, !line.hasPrefix(" ") else { continue }
                let name = String(words[words.count - 1].prefix { $0 != "." })
                let allowed = Self.table[module, default: []].union(Self.system)
                #expect(allowed.contains(name), "\(module)/\(file.lastPathComponent) imports \(name)")
            }
        }
    }

    @Test func `every folder of Sources is in the table`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)

        #expect(
            Set(folders).subtracting(["CAvahi", "CImages", "CLinux", "CQRencode", "CSQLite", "CUsbmuxd"])
                == Set(Self.table.keys)
        )
    }

    @Test func `no source file is longer than 400 lines`() throws {
        for file in try Self.files(in: "Sources") {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n",
                omittingEmptySubsequences: false
            )
            #expect(lines.count <= 401, "\(file.lastPathComponent) has \(lines.count) lines")
        }
    }

    @Test func `nothing is public`() throws {
        for file in try Self.files(in: "Sources") {
            let text = try String(contentsOf: file, encoding: .utf8)
            #expect(!text.contains("public "), "\(file.lastPathComponent) says public")
        }
    }
}
