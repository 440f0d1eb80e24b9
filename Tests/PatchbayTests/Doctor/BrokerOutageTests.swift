import Client
import Model
import Testing

@testable import patchbay

/// A broker that does not answer has a cause that every command names.
@Suite struct BrokerOutageTests {
    private static let lost = ClientError.connectionLost(what: "GET /v1/status")
    private static let missing = ClientError.brokerNotRunning(path: BrokerSocketPath.system)
    private static let mistake = "/etc/patchbay/patchbay.toml:1:12: a value is missing after ="

    private func explain(
        _ error: ClientError,
        _ configuration: ConfigurationFileCheck.Result,
        _ service: BrokerService.State?
    ) -> CLIError? {
        BrokerOutage.explain(
            error,
            configuration: configuration,
            service: service
        )
    }

    @Test(arguments: [lost, missing]) func `an invalid configuration is named with its file, line and reason`(
        error: ClientError
    ) {
        let service = explain(error, .invalid([Self.mistake]), BrokerService.State("failed error: x"))
        #expect(service?.status == .configuration && service?.candidates == [Self.mistake])
        #expect(service?.hint == "correct the file, then `sudo systemctl restart patchbayd`")
        let own = explain(error, .invalid([Self.mistake]), nil)
        #expect(own?.hint == "correct the file, then start `patchbayd`")
    }

    @Test func `a stopped service is named by its socket and with the command that starts it`() {
        let error = explain(Self.missing, .valid, BrokerService.State("inactive "))
        #expect(
            error?.message
                == "no broker listens at /run/patchbay/patchbay.sock: the service patchbayd is inactive"
        )
        #expect(error?.hint == "sudo systemctl start patchbayd" && error?.status == .notReachable)
    }

    @Test func `a failed service has its own words, and the command that shows its log`() {
        let words = "error: the state folder /x cannot be used"
        let error = explain(Self.lost, .valid, BrokerService.State("failed \(words)"))
        #expect(error?.message.hasSuffix(": the service patchbayd is failed, \(words)") == true)
        #expect(
            error?.hint == "sudo systemctl restart patchbayd; its log: `sudo journalctl -u patchbayd -n 20`"
        )
        let crashed = explain(Self.lost, .valid, BrokerService.State("failed serving on /run/patchbay/patchbay.sock"))
        #expect(crashed?.message.hasSuffix("the service patchbayd is failed") == true)
    }

    @Test func `without a cause the error stays as it is`() {
        #expect(explain(Self.missing, .valid, nil) == nil)
        #expect(explain(Self.lost, .unknown("no patchbayd"), BrokerService.State("active serving")) == nil)
        #expect(BrokerOutage(ClientError.sshMissing, at: .unix(path: "/x")) == nil)
        #expect(BrokerOutage(Self.missing, at: nil) == nil)
    }

    @Test func `an invalid file is a problem without a broker, and a warning beside one`() {
        let errors = ConfigurationFileCheck.errors(in: "error: \(Self.mistake)\nerror: b\nother\n")
        #expect(errors == [Self.mistake, "b"])
        let stopped = ConfigurationFileCheck.problem(.invalid(errors), isService: true, pid: nil)
        let running = ConfigurationFileCheck.problem(.invalid([Self.mistake]), isService: false, pid: 7)
        #expect(stopped?.severity == .problem && stopped?.text == "\(Self.mistake), and 1 more")
        #expect(stopped?.command == "sudo systemctl restart patchbayd")
        #expect(running?.severity == .warning && running?.hint == "correct the file, then `kill -HUP 7`")
        #expect(ConfigurationFileCheck.problem(.valid, isService: true, pid: nil) == nil)
    }
}
