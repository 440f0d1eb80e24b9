import TestSupport
import Testing

@Suite(.needs(.python), .scratchFolder) struct WatchTests {
    private let scratch = ScratchFolder.current

    @Test func `list --watch shows additions, changes and removals, and continues after a broker restart`() async throws
    {
        let app = try await SampleApp(in: scratch)
        let broker = try await RunningBroker(in: scratch)
        let watch = try await broker.start("list", "--watch")
        let json = try await broker.start("list", "--watch", "--json")
        try await watch.waitForLine("no endpoints; waiting")
        try await json.waitForLine("\"event\":\"snapshot\"")

        _ = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        // The first connection to the app may end before or after the addition is shown.
        try await watch.waitForLine("+  shop  ")
        try await watch.waitForLine("shop  online")
        try await json.waitForLine("\"kind\":\"added\"")
        try await app.quit()
        _ = try await broker.ask("show", "shop", "--probe")
        try await watch.waitForLine("~  shop  suspect")
        try await json.waitForLine("\"kind\":\"changed\"")

        let lines = (watch.transcript.soFar.count, json.transcript.soFar.count)
        try await broker.restart()
        try await watch.waitForLine("reconnected to the broker", from: lines.0)
        try await json.waitForLine("\"id\":\"shop\"", from: lines.1)
        _ = try await broker.ask("rm", "shop")
        try await watch.waitForLine("-  shop  removed", from: lines.0)
        try await json.waitForLine("\"kind\":\"removed\"", from: lines.1)
        _ = try await broker.ask("add", "Lab", "127.0.0.1:9")
        try await watch.waitForLine("+  lab", from: lines.0)
    }
}
