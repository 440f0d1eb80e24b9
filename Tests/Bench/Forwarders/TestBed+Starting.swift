import FoundationEssentials
import Glibc
import SystemIO
import TestSupport

/// Starts each forwarder on a test bed, ready for its first client.
extension TestBed {
    func start(_ kind: ForwarderKind) async throws -> Forwarder {
        switch kind {
        case .mux: Forwarder(kind, addresses: addresses { .mux(path: muxPath, port: port(of: $0)) })
        case .tcp: Forwarder(kind, addresses: addresses { .tcp(port(of: $0)) })
        case .iproxy: try await startIproxy()
        case .socat: try await startSocat()
        case .patchbay: try await PatchbayStart(on: self).forwarder(.patchbay)
        case .endpoint: try await PatchbayStart(on: self).forwarder(.endpoint)
        }
    }

    /// The path of iproxy: BENCH_IPROXY, or the one of the system. The newest source is in no release.
    static var iproxy: String { ProcessInfo.processInfo.environment["BENCH_IPROXY"] ?? "iproxy" }

    private func startIproxy() async throws -> Forwarder {
        let local = try freePorts()
        let pairs = App.allCases.map { "\(local[$0, default: 0]):\(port(of: $0))" }
        let program = try await Program(Self.iproxy, ["-u", Phone.udid] + pairs, in: scratch, environment: environment)
        try await waitForListeners(on: local)
        return Forwarder(.iproxy, addresses: local.mapValues { .tcp($0) }, programs: [program])
    }

    private func startSocat() async throws -> Forwarder {
        let local = try freePorts()
        var programs: [Program] = []
        for (app, port) in local {
            let listen = "TCP-LISTEN:\(port),bind=127.0.0.1,reuseaddr,fork,backlog=4096"
            let connect = "UNIX-CONNECT:\(phone.paths[app, default: ""])"
            programs.append(try await Program("socat", [listen, connect], in: scratch))
        }
        try await waitForListeners(on: local)
        return Forwarder(.socat, addresses: local.mapValues { .tcp($0) }, programs: programs)
    }

    func addresses(_ address: (App) -> AppAddress) -> [App: AppAddress] {
        Dictionary(uniqueKeysWithValues: App.allCases.map { ($0, address($0)) })
    }

    /// Returns free ports below the ephemeral range (`ip_local_port_range`). iproxy cannot listen on a port that an
    /// earlier client used, as long as the kernel has that connection in TIME_WAIT.
    private func freePorts() throws -> [App: UInt16] {
        var ports: [App: UInt16] = [:]
        for app in App.allCases {
            for _ in 0..<100 where ports[app] == nil {
                let port = UInt16.random(in: 10_000..<32_000)
                guard !ports.values.contains(port), let probe = try? Listener(on: .ipv4(0x7F00_0001, port: port))
                else { continue }
                probe.close()
                ports[app] = port
            }
        }
        guard ports.count == App.allCases.count else {
            throw TestSupportError("there is no free port from 10000 to 31999")
        }
        return ports
    }

    /// Waits until the ports listen. Reads proc_net(5), because a test connection makes iproxy 2.0.2 hang at the next
    /// one.
    private func waitForListeners(on ports: [App: UInt16]) async throws {
        let wanted = Set(ports.values)
        try await eventually("the forwarder listens") {
            let lines = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8).split(separator: "\n")
            let found = lines.compactMap { line -> UInt16? in
                let words = line.split(separator: " ")
                guard words.count > 3, words[3] == "0A" else { return nil }
                return words[1].split(separator: ":").last.flatMap { UInt16($0, radix: 16) }
            }
            return wanted.isSubset(of: found)
        }
    }
}
