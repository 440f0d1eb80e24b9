import Foundation
import Testing

/// The dependencies between modules: each module imports only the modules of its line in the table.
///
/// The compiler rejects an import of an undeclared module but accepts transitive imports, even with
/// `--explicit-target-dependency-import-check error`. The tests therefore compare the import lines with the table.
@Suite struct ModuleDependencyTests {
    static let systemModules: Set<String> = ["FoundationEssentials", "Glibc", "Synchronization"]
    static let allowedImports: [String: Set<String>] = [
        "Model": [],
        "JSON": [],
        "TOML": ["JSON", "Model", "TOMLKit"],
        "Profiles": ["JSON", "Model", "TOML"],
        "SystemIO": ["CLinux", "Model", "Logging"],
        "Discovery": ["CAvahi", "CLinux", "Model", "SystemIO", "Logging", "ServiceLifecycle"],
        "Devices": ["CLinux", "CUsbmuxd", "Model", "SystemIO", "Logging", "ServiceLifecycle"],
        "Probing": [
            "JSON", "Model", "Profiles", "SystemIO", "Logging", "ServiceLifecycle", "NIOCore", "NIOPosix", "NIOHTTP1",
            "NIOWebSocket",
        ],
        "Registry": ["Model"],
        "Tunnels": ["CLinux", "Model", "SystemIO", "Logging", "Metrics", "ServiceLifecycle"],
        "AccessControl": ["CLinux", "CSQLite", "Model", "SystemIO", "Crypto", "Logging", "ServiceLifecycle"],
        "QR": ["CQRencode"],
        "Images": ["CImages", "Model", "SystemIO"],
        "Compression": ["CZlib"],
        "API": [
            "Images", "JSON", "MCP", "Model", "AccessControl", "QR", "Registrations", "Registry", "StreamBridge",
            "SystemIO", "Tunnels", "HTTPTypes", "Hummingbird", "HummingbirdCore", "Logging", "Metrics", "NIOCore",
            "NIOExtras",
            "NIOHTTP1", "NIOHTTPTypesHTTP1", "NIOPosix", "NIOTLS", "ServiceLifecycle",
        ],
        "MCP": [
            "Compression", "Images", "JSON", "Model", "AccessControl", "Profiles", "Registry", "SystemIO", "Tunnels",
            "Crypto",
            "Logging", "Metrics", "ServiceLifecycle",
        ],
        "PrometheusMetrics": ["CoreMetrics", "Model"],
        "Registrations": ["Model", "SystemIO", "ServiceLifecycle"],
        "DebugLink": ["JSON", "Model", "SystemIO", "Logging", "ServiceLifecycle"],
        "UsbmuxServer": ["Devices", "Model", "SystemIO", "Tunnels", "Logging", "ServiceLifecycle"],
        "Client": ["JSON", "Model", "StreamBridge", "SystemIO", "NIOCore", "NIOPosix", "NIOHTTP1"],
        "StreamBridge": ["SystemIO", "NIOCore", "NIOPosix"],
        "Team": ["Model", "SystemIO", "Logging", "ServiceLifecycle"],
        "Etcd": [
            "SystemIO", "Team", "TLS", "Logging", "Model", "NIOCore", "NIOHPACK", "NIOHTTP2", "NIOPosix", "NIOSSL",
            "SwiftProtobuf",
        ],
        "TLS": ["Model", "SystemIO", "Crypto", "NIOCore", "NIOSSL", "SwiftASN1", "X509"],
        "patchbayd": [
            "API", "Client", "CLinux", "CVersion", "DebugLink", "Devices", "Discovery", "Etcd", "UsbmuxServer",
            "Images", "JSON", "MCP", "Model", "AccessControl", "CoreMetrics", "NIOCore", "Probing", "Profiles",
            "PrometheusMetrics", "Registrations", "Registry", "SystemIO", "Team", "TLS", "Tunnels", "ArgumentParser",
            "Logging", "ServiceLifecycle", "TOML", "UnixSignals",
        ],
        "patchbay": [
            "ArgumentParser", "Client", "CLinux", "CVersion", "Devices", "JSON", "Model", "QR", "SystemIO", "TLS",
            "Tunnels", "UsbmuxServer",
        ],
    ]

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The Swift files of a folder, without those that protoc has generated.
    static func files(in folder: String) throws -> [URL] {
        let folder = root.appending(path: folder)
        return try #require(FileManager.default.subpaths(atPath: folder.path))
            .filter { $0.hasSuffix(".swift") && !$0.hasSuffix(".pb.swift") }.map { folder.appending(path: $0) }
    }

    @Test(arguments: allowedImports.keys.sorted())
    func `a module imports only the modules of its line in the table`(module: String) throws {
        let files = try Self.files(in: "Sources/\(module)")
        #expect(!files.isEmpty)
        for file in files {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard let index = words.firstIndex(of: "import"), index <= 1, !line.hasPrefix(" ") else { continue }
                let name = String(words[words.count - 1].prefix { $0 != "." })
                let allowed = Self.allowedImports[module, default: []].union(Self.systemModules)
                #expect(allowed.contains(name), "\(module)/\(file.lastPathComponent) imports \(name)")
            }
        }
    }

    @Test func `every folder of Sources is in the table`() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: "Sources").path)

        #expect(
            Set(folders)
                .subtracting(["CAvahi", "CImages", "CLinux", "CQRencode", "CSQLite", "CUsbmuxd", "CVersion", "CZlib"])
                == Set(Self.allowedImports.keys)
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
            // Comments and enum cases may contain the word.
            let hasPublicDeclaration = text.contains(#/(?m)^[ \t]*(@\w+\s+)*public\s/#)
            #expect(!hasPublicDeclaration, "\(file.lastPathComponent) has a public declaration")
        }
    }
}
