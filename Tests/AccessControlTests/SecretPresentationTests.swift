import Model
import Testing

@testable import AccessControl

@Suite struct SecretPresentationTests {
    private let secret: EndpointSecret
    private let port = RoutePort(.network(NetworkRoute(address: "192.168.1.20", port: 9_876)))
    private let otherPort = RoutePort(.network(NetworkRoute(address: "192.168.1.20", port: 8_765)))

    init() throws { secret = try EndpointSecret("abc") }

    @Test func `a secret is sent to the launch that was observed when it was given, and to no later one`() {
        let (launch, next) = (LaunchObservation(), LaunchObservation())
        let presentation = SecretPresentation(of: secret, to: [port: launch])

        #expect(presentation.allows(launch, at: port, isForUnseen: false))
        #expect(!presentation.allows(next, at: port, isForUnseen: false))
        #expect(!presentation.allows(next, at: otherPort, isForUnseen: false))
    }

    @Test func `a secret for an absent app is sent to the first launch only`() {
        let (launch, next) = (LaunchObservation(), LaunchObservation())
        var presentation = SecretPresentation(of: secret)
        #expect(presentation.allows(launch, at: port, isForUnseen: false))
        presentation.record(launch, at: port)

        #expect(presentation.allows(launch, at: port, isForUnseen: false))
        #expect(!presentation.allows(next, at: port, isForUnseen: false))
    }

    @Test func `a secret with a port is also for the first launch at that port`() {
        let (launch, next) = (LaunchObservation(), LaunchObservation())
        var presentation = SecretPresentation(of: secret, to: [port: launch], namedPort: 8_765)
        #expect(presentation.allows(next, at: otherPort, isForUnseen: false))
        presentation.record(next, at: otherPort)

        #expect(!presentation.allows(LaunchObservation(), at: otherPort, isForUnseen: false))
    }

    @Test func `a secret for an unseen launch ends when a launch that was not known rejects it`() {
        let (old, next) = (LaunchObservation(), LaunchObservation())
        var presentation = SecretPresentation(of: secret, to: [port: old])
        presentation.reject(at: [port])
        #expect(!presentation.allows(old, at: port, isForUnseen: true))
        #expect(presentation.allows(next, at: port, isForUnseen: true))
        presentation.record(next, at: port)
        presentation.reject(at: [port])

        #expect(!presentation.allows(next, at: port, isForUnseen: true))
        #expect(!presentation.allows(LaunchObservation(), at: port, isForUnseen: true))
    }

    @Test func `a secret that was given in exchange belongs to the same launch`() throws {
        let launch = LaunchObservation()
        let exchanged = SecretPresentation(of: secret, to: [port: launch]).exchanged(for: try EndpointSecret("def"))

        #expect(exchanged.allows(launch, at: port, isForUnseen: false))
        #expect(!exchanged.allows(LaunchObservation(), at: port, isForUnseen: false))
    }
}
