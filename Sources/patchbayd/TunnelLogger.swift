import Logging
import Model
import ServiceLifecycle
import Tunnels

/// Tells the operator which tunnels stand, and of each why connections fail: the first of every reason, not each of them.
struct TunnelLogger: Service {
    let tunnels: TunnelTable
    let logger: Logger

    private struct Failure: Hashable {
        let tunnel: String
        let reason: DialError.Reason
    }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            var told: Set<Failure> = []
            for tunnel in await tunnels.list() { tell("tunnel restored", tunnel) }
            // A follower that was too slow is let go and goes on from here: what it missed is in `patchbay tunnels`.
            while !Task.isCancelled {
                for await event in await tunnels.events() { tell(event, &told) }
                try Task.checkCancellation()
                await Task.yield()
            }
        }
    }

    private func tell(_ event: TunnelEvent, _ told: inout Set<Failure>) {
        switch event {
        case .opened(let tunnel): tell("tunnel opened", tunnel)
        case .removed(let id):
            told = told.filter { $0.tunnel != id }
            logger.info("tunnel removed", metadata: ["id": "\(id)"])
        case .changed(let tunnel):
            if case .failed = tunnel.state { tell("tunnel does not listen", tunnel) }
            // Its target is back: the next failure is news again.
            if case .active = tunnel.state { told = told.filter { $0.tunnel != tunnel.id } }
        case .connectionFailed(let id, let failure):
            guard told.insert(Failure(tunnel: id, reason: failure.reason)).inserted else { return }
            logger.info(
                "connections through a tunnel fail",
                metadata: ["id": "\(id)", "reason": "\(failure.reason.rawValue)", "detail": "\(failure)"]
            )
        }
    }

    private func tell(_ what: Logger.Message, _ tunnel: Tunnel) {
        let bound =
            tunnel.bound.isEmpty ? "\(tunnel.spec.local)" : tunnel.bound.map(\.description).joined(separator: " ")
        let target =
            switch tunnel.spec.target {
            case .device(let udid, let port): "\(Route.usb(USBRoute(udid: udid, port: port)))"
            case .endpoint(let id): id.text
            }
        var metadata: Logger.Metadata = [
            "id": "\(tunnel.id)", "local": "\(bound)", "target": "\(target)", "owner": "\(tunnel.owner)",
        ]
        if let replaced = tunnel.replaced { metadata["replaced"] = "\(replaced)" }
        if let reason = tunnel.state.reason, !reason.isEmpty { metadata["reason"] = "\(reason)" }
        logger.info(what, metadata: metadata)
    }
}
