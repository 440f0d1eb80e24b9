// swift-tools-version: 6.2
import PackageDescription

/// The path of libFuzzer, set by `make fuzz`. Tests/FuzzTests is then an executable instead of a test target.
let libFuzzer = Context.environment["PATCHBAY_FUZZ"]
let instruments: [SwiftSetting] = libFuzzer == nil ? [] : [.unsafeFlags(["-O", "-sanitize=fuzzer,address"])]

/// The settings of every target: Swift 6, warnings are errors, imports are internal by default.
let settings: [SwiftSetting] =
    [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .treatAllWarnings(as: .error),
    ] + instruments

let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics")
let coreMetrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioHPACK: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
let nioHTTP2: Target.Dependency = .product(name: "NIOHTTP2", package: "swift-nio-http2")
let nioTLS: Target.Dependency = .product(name: "NIOTLS", package: "swift-nio")
let nioExtras: Target.Dependency = .product(name: "NIOExtras", package: "swift-nio-extras")
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let swiftASN1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let protobuf: Target.Dependency = .product(name: "SwiftProtobuf", package: "swift-protobuf")
let tomlKit: Target.Dependency = .product(name: "TOMLKit", package: "TOMLKit")

func module(_ name: String, _ dependencies: [Target.Dependency], _ more: [SwiftSetting] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: settings + more)
}

/// For the relay, whose state belongs to one thread. Debug builds, which the tests use, check exclusive access at run time.
let uncheckedInRelease: [SwiftSetting] = [
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))
]

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// The modules with fuzzed parsers.
let fuzzed: [Target.Dependency] = [
    "AccessControl", "API", "Apps", "Devices", "Discovery", "Model", "TOML", "Transport", "Tunnels", httpTypes,
]

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

let package = Package(
    name: "patchbay",
    products: [
        .executable(name: "patchbay", targets: ["patchbay"]),
        .executable(name: "patchbayd", targets: ["patchbayd"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // C libraries with module maps; they contain only code that Swift cannot import.
        .systemLibrary(name: "CAvahi", providers: [.apt(["libavahi-client-dev"])]),
        .systemLibrary(name: "CUsbmuxd", providers: [.apt(["libusbmuxd-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CImages", providers: [.apt(["libpng-dev", "libturbojpeg0-dev", "libyuv-dev"])]),
        .systemLibrary(name: "CQRencode", providers: [.apt(["libqrencode-dev"])]),
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "CVersion", exclude: ["stamp"]),
        // The files of the dashboard's page, embedded.
        .target(name: "CDashboard", exclude: ["Page"]),

        // Values, TOML files, and system I/O.
        module("Model", ["CQRencode"]),
        module("TOML", ["Model", "SystemIO", tomlKit]),
        module("SystemIO", ["CLinux", "Model", logging]),

        // Connections over TLS and NIO.
        module(
            "Transport",
            ["Model", "SystemIO", crypto, cryptoExtras, nioCore, nioPosix, nioSSL, swiftASN1, x509]
        ),

        // Sources of sightings.
        module("Discovery", ["CAvahi", "CLinux", "Model", "SystemIO", logging, lifecycle]),
        module("Devices", ["CLinux", "CUsbmuxd", "Model", "SystemIO", "Tunnels", logging, lifecycle]),

        // The registry and the tunnels.
        module("Registry", ["Model", "SystemIO", logging, lifecycle]),
        module("Tunnels", ["CLinux", "Model", "SystemIO", logging, lifecycle, metrics], uncheckedInRelease),

        // Access control.
        module("AccessControl", ["CLinux", "CSQLite", "Model", "SystemIO", crypto, logging, lifecycle]),

        // From the broker to the apps, and from agents to the broker.
        module(
            "Apps",
            [
                "AccessControl", "CImages", "CZlib", "Model", "Registry", "SystemIO", "TOML", "Tunnels", crypto,
                logging,
                lifecycle,
                metrics,
            ]
        ),
        module(
            "Agents",
            ["AccessControl", "Apps", "Model", "Registry", "SystemIO", "Tunnels", crypto, logging, lifecycle]
        ),

        // Servers and clients.
        module(
            "API",
            [
                "AccessControl", "Agents", "Apps", "CDashboard", "Client", "CZlib", "Devices", "Discovery", "Model",
                "Registry", "SystemIO", "Team", "Transport", "Tunnels", coreMetrics, crypto, httpTypes, hummingbirdCore,
                logging, lifecycle, metrics, nioCore, nioExtras, nioHTTP1, nioHTTPTypes, nioPosix, nioTLS,
            ]
        ),
        module("Client", ["Model", "SystemIO", "Transport", nioCore, nioPosix, nioHTTP1]),

        // The registry that the brokers of a team share.
        .target(
            name: "Team",
            dependencies: [
                "AccessControl", "Apps", "Client", "Discovery", "Model", "Registry", "SystemIO", "Transport", "Tunnels",
                crypto, httpTypes, logging, lifecycle, metrics, nioCore, nioHPACK, nioHTTP1, nioHTTP2, nioPosix, nioSSL,
                protobuf, swiftASN1, x509,
            ],
            exclude: ["Etcd/Protocol/etcd.proto"],
            swiftSettings: settings
        ),

        // The two executables.
        program(
            "patchbayd",
            [
                "AccessControl", "Agents", "API", "Apps", "CLinux", "CVersion", "Devices", "Discovery", "Model",
                "Registry", "SystemIO", "Team", "TOML", "Transport", "Tunnels", argumentParser, coreMetrics, logging,
                lifecycle, unixSignals,
            ]
        ),
        program(
            "patchbay",
            [
                "Client", "CLinux", "CVersion", "Devices", "Model", "SystemIO", "Transport", "Tunnels",
                argumentParser,
            ]
        ),

        // Test infrastructure: starts real daemons in private directories. A separate Makefile builds the C part.
        .target(
            name: "TestSupport",
            dependencies: ["CLinux", "Devices", "Model", "SystemIO", "Tunnels", nioCore, nioPosix],
            path: "Tests/TestSupport",
            exclude: [
                "adb", "appdebug.py", "dartvm.py", "debugbridge.py", "demo", "devicekit.py", "lineapp.py",
                "lockdownd.py", "mobilecli.py",
                "openagents.py", "sampleapp.py", "simlock.py", "statedebug.py", "systemd", "usbmuxd",
                "webdriveragent.py",
            ],
            swiftSettings: settings
        ),
        // Values that tests of several modules need, such as an endpoint.
        .target(
            name: "Samples",
            dependencies: ["AccessControl", "Model", logging],
            path: "Tests/Samples",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "bench",
            dependencies: ["CLinux", "SystemIO", "TestSupport", argumentParser],
            path: "Tests/Bench",
            swiftSettings: settings
        ),
        tests("BenchTests", ["bench", "TestSupport"]),
        tests("ModelTests", ["Model", "TestSupport"]),
        tests("TOMLTests", ["Model", "TOML"]),
        tests("SystemIOTests", ["CLinux", "Model", "Samples", "SystemIO", "TestSupport", logging]),
        tests(
            "TransportTests",
            ["Model", "SystemIO", "TestSupport", "Transport", crypto, nioCore, nioPosix, nioSSL, swiftASN1, x509]
        ),
        tests("DiscoveryTests", ["Discovery", "Model", "Samples", "SystemIO", "TestSupport", logging]),
        tests(
            "DevicesTests",
            ["CLinux", "Devices", "Model", "Samples", "SystemIO", "TestSupport", "Tunnels", logging, lifecycle]
        ),
        tests("RegistryTests", ["Model", "Registry", "Samples", "SystemIO", "TestSupport", logging]),
        tests(
            "TeamTests",
            [
                "AccessControl", "Agents", "Apps", "Client", "Discovery", "Model", "Registry", "Samples", "SystemIO",
                "Team", "TestSupport", "Transport", "Tunnels", crypto, logging, lifecycle, nioCore, nioHPACK, nioHTTP1,
                nioPosix, nioSSL, protobuf, swiftASN1, x509,
            ]
        ),
        tests(
            "TunnelsTests",
            ["CLinux", "Model", "Samples", "SystemIO", "TestSupport", "Tunnels", logging, lifecycle]
        ),
        tests(
            "AppsTests",
            [
                "AccessControl", "Apps", "Model", "Registry", "Samples", "SystemIO", "TestSupport", "TOML", logging,
            ]
        ),
        tests(
            "AccessControlTests",
            [
                "AccessControl", "CLinux", "CSQLite", "Model", "Samples", "SystemIO", "TestSupport", crypto, logging,
                lifecycle,
            ]
        ),
        .executableTarget(
            name: "PairingCrash",
            dependencies: ["AccessControl", "Model", logging],
            path: "Tests/PairingCrash",
            swiftSettings: settings
        ),
        tests(
            "APITests",
            [
                "AccessControl", "API", "Apps", "Client", "Model", "Registry", "Samples", "SystemIO", "Team",
                "TestSupport", "Tunnels",
                httpTypes, logging, metrics, nioCore, nioEmbedded, nioHTTP1, nioPosix,
            ]
        ),
        tests(
            "AgentsTests",
            [
                "AccessControl", "Agents", "Apps", "Model", "Registry", "Samples", "SystemIO", "Team",
                "TestSupport", "Tunnels", logging, lifecycle,
            ]
        ),
        tests(
            "ClientTests",
            ["Client", "Model", "Samples", "SystemIO", "TestSupport", "Transport", nioCore, nioHTTP1, nioPosix]
        ),
        tests(
            "PatchbaydTests",
            [
                "AccessControl", "API", "Apps", "Client", "Devices", "Discovery", "Model", "patchbayd",
                "Registry", "Samples", "SystemIO", "Team", "TestSupport", "TOML", "Transport", "Tunnels", logging,
                lifecycle, nioCore, nioPosix,
            ]
        ),
        tests(
            "PatchbayTests",
            ["Client", "Model", "patchbay", "Samples", "TestSupport", "Transport", argumentParser, nioCore, nioPosix]
        ),
        tests("ArchitectureTests", []),
        tests("TestSupportTests", ["CLinux", "TestSupport"]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "AccessControl", "API", "Apps", "CLinux", "Devices", "Discovery", "Model", "patchbay",
                "patchbayd", "SystemIO", "TestSupport", logging,
            ],
            exclude: [
                "AccessControl/access_end.py", "AccessControl/api_client.py", "AccessControl/browser.py",
                "AccessControl/consent.py", "AccessControl/dashboard.py", "AccessControl/foreign_page.py",
                "AccessControl/full_disk.py",
                "AccessControl/grant_termination.py", "AccessControl/impersonation.py", "AccessControl/leaks.py",
                "AccessControl/oauth.py", "AccessControl/oauth_fastmcp.py", "AccessControl/oauth_page.py",
                "AccessControl/redemption_race.py", "AccessControl/users.py", "Agents/caller.py", "Agents/environment",
                "Agents/framework.py", "Agents/grants.py", "Agents/keeper.py", "Agents/leases.py", "Agents/lines.py",
                "Agents/oracle.py", "Agents/peer.py", "Agents/requirements", "Agents/schemas", "Agents/server.py",
                "Agents/transcript.py", "Agents/wda_peer.py", "Conformance/app.py", "Conformance/app_tools.py",
                "Conformance/mcp_client.py", "Conformance/scenarios.py", "Conformance/stateless_scenarios.py",
                "Crash/clients.py", "Crash/crash.py", "Crash/cutpoint.c", "Crash/rig.py", "Crash/scenarios.py",
                "Dashboard/activity.py", "Dashboard/app.py", "Dashboard/appearance.py", "Dashboard/bench.py",
                "Dashboard/connection.py", "Dashboard/decisions.py", "Dashboard/device.py", "Dashboard/foreign.py",
                "Dashboard/page.py",
                "Dashboard/pictures.py", "Dashboard/rig.py", "Dashboard/scenes.py", "Dashboard/screenapp.py",
                "Dashboard/team.py",
                "DebugLink/debug_peer.py", "Interop/arguments.py", "Interop/clients.py", "Interop/lines.py",
                "Interop/lists.py", "Interop/peer.py", "Interop/replay.py", "Interop/results.py", "Interop/servers.py",
                "Interop/traces", "Load/burst.py", "Mistakes/mistakes.tsv", "Move/calls.py", "Remote/joining",
                "Remote/remote_peer.py",
                "Remote/stream_upgrade.py", "Service/answers.py", "Service/callers.py", "Service/demopage.py",
                "Service/documents",
                "Service/documents.py", "Service/openapi_check.py", "Service/team_answers.py", "Soak/attacker.py",
                "Team/clock_offset.c", "Team/hostile_host.py",
            ],
            swiftSettings: settings
        ),
    ]
)

if let libFuzzer {
    package.targets += [
        .systemLibrary(name: "CLibFuzzer", path: "Tests/FuzzTests/LibFuzzer/CLibFuzzer"),
        .executableTarget(
            name: "fuzz",
            dependencies: fuzzed + ["CLibFuzzer"],
            path: "Tests/FuzzTests",
            exclude: ["Corpus", "LibFuzzer/CLibFuzzer", "Seeded", "run"],
            swiftSettings: settings,
            linkerSettings: [.unsafeFlags(["-sanitize=address", "-use-ld=lld", "-Xlinker", libFuzzer, "-lstdc++"])]
        ),
    ]
} else {
    package.targets.append(
        .testTarget(
            name: "FuzzTests",
            dependencies: fuzzed + ["TestSupport"],
            exclude: ["Corpus", "LibFuzzer", "run"],
            swiftSettings: settings
        )
    )
}
