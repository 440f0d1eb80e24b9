import Model
import SystemIO
import Testing

@testable import Tunnels

/// Tries every order of a few events at a relayed connection.
@Suite struct RelaySearchTests {
    /// A target of the relay: TCP, a phone, or a phone with a link check.
    enum Target: CaseIterable {
        case network, phone, watchedPhone

        func model() -> RelayModel {
            RelayModel(self == .network ? .propagates : .destroys, hasLinkCheck: self == .watchedPhone)
        }
    }

    private static let depth = 4

    @Test(arguments: Target.allCases)
    func `a connection ends, and loses and repeats no byte, at any order of events`(target: Target) {
        var open: [[RelayModel.Event]] = [[]]
        var tried = 0
        while let history = open.popLast() {
            let model = target.model()
            guard history.map(model.handle).last != false else { continue }
            tried += 1
            if history.count < Self.depth { open += RelayModel.Event.allCases.map { history + [$0] } }
            if let promise = brokenPromise(of: model, target, after: history) {
                Issue.record("not kept: \(promise), after \(history); \(model.client) \(model.target)")
                return
            }
        }
        #expect(tried > 2_000, "\(tried)")
    }

    private func brokenPromise(
        of model: RelayModel,
        _ kind: Target,
        after history: [RelayModel.Event]
    ) -> String? {
        guard model.settle(), let reason = model.reason else { return "every connection ends" }
        let (client, target) = (model.client, model.target)
        if client.isDamaged || target.isDamaged { return "bytes arrive in order, once" }
        if client.received > target.sent || target.received > client.sent { return "no byte is made up" }
        // A phone that closes takes no more bytes.
        let takesAll = !target.isClosed && (kind == .network || !history.contains(.targetFinishes))
        if takesAll, target.received < client.sent { return "a client's bytes arrive (\(reason))" }
        if !client.isClosed, client.received < target.sent { return "a target's bytes arrive (\(reason))" }
        if !client.isClosed, !client.hasEOF { return "the client learns of the end" }
        guard !client.isClosed, takesAll else { return nil }
        let isLost = history.contains(.linkIsLost)
        return (reason == .linkLost) == isLost && (isLost || reason == .finished || reason == .drained)
            ? nil : "two peers that finish end normally, and not by \(reason)"
    }
}
