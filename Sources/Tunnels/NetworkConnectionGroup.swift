/// Those of a tunnel's connections that go through the network: a group that is cut by itself, when somebody takes back the yes
/// that let them go there. What goes by cable goes on.
final class NetworkConnectionGroup: RelayObserver {
    private let tally: TunnelMetrics

    init(of tally: TunnelMetrics) { self.tally = tally }

    func relayed(up: Int, down: Int) { tally.relayed(up: up, down: down) }

    func ended(_ outcome: RelayOutcome) { tally.ended(outcome) }
}
