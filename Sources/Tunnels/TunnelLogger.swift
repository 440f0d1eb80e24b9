package import Logging
import Model
import ServiceLifecycle
import SystemIO

/// Logs opened and removed tunnels, and for each tunnel the first connection failure of each reason.
package struct TunnelLogger: Service {
    private let tunnels: TunnelTable
    private let logger: Logger

    package init(of tunnels: TunnelTable, logger: Logger) {
        self.tunnels = tunnels
        self.logger = logger
    }

    private struct Failure: Hashable {
        let tunnel: String
        let reason: DialError.Reason
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var logged: Set<Failure> = []
            for tunnel in await tunnels.list() { log("tunnel restored", tunnel) }
            // The stream of a slow subscriber ends. The next one continues from here; `patchbay tunnels` has the
            // current state.
            while !Task.isCancelled {
                for await event in await tunnels.events() { log(event, &logged) }
                try Task.checkCancellation()
                await Task.yield()
            }
        }
    }

    private func log(_ event: TunnelChange, _ logged: inout Set<Failure>) {
        switch event {
        case .opened(let tunnel): log("tunnel opened", tunnel)
        case .removed(let id):
            logged = logged.filter { $0.tunnel != id }
            logger.info("tunnel removed", metadata: ["id": "\(id)"])
        case .changed(let tunnel):
            if case .failed = tunnel.state { log("tunnel does not listen", tunnel) }
            // The target is back: the next failure is logged again.
            if case .active = tunnel.state { logged = logged.filter { $0.tunnel != tunnel.id } }
        case .connectionFailed(let id, let failure):
            guard logged.insert(Failure(tunnel: id, reason: failure.reason)).inserted else { return }
            logger.info(
                "connections through a tunnel fail",
                metadata: ["id": "\(id)", "reason": "\(failure.reason.rawValue)", "detail": "\(failure)"]
            )
        }
    }

    private func log(_ message: Logger.Message, _ tunnel: Tunnel) {
        let addresses = tunnel.listenAddresses.map(\.description).joined(separator: " ")
        let bound = addresses.isEmpty ? "\(tunnel.spec.local)" : addresses
        let target =
            switch tunnel.spec.target {
            case .device(let route): "\(Route.usb(route))"
            case .endpoint(let id): id.text
            }
        var metadata: Logger.Metadata = [
            "id": "\(tunnel.id)", "local": "\(bound)", "target": "\(target)", "owner": "\(tunnel.owner)",
        ]
        if let replaced = tunnel.replaced { metadata["replaced"] = "\(replaced)" }
        if let reason = tunnel.state.reason, !reason.isEmpty { metadata["reason"] = "\(reason)" }
        logger.info(message, metadata: metadata)
    }
}
