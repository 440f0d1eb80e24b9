import Client
import Model

/// The reason why the broker of this machine does not answer: an invalid configuration, or a stopped service.
struct BrokerOutage {
    let error: ClientError
    /// The path of the broker's socket.
    let socket: String

    /// - Returns: Nil for an error of another kind, or of a broker on another machine.
    init?(_ error: any Error, at address: BrokerAddress?) {
        guard let error = error as? ClientError, case .unix(let path)? = address else { return nil }
        switch error {
        case .brokerNotRunning, .connectionLost: (self.error, socket) = (error, path)
        default: return nil
        }
    }

    /// Returns the error with the reason and the next step; nil if neither the file nor the service has one.
    func explained() async -> CLIError? {
        let isService = BrokerService.isBroker(at: socket)
        return Self.explain(
            error,
            configuration: await ConfigurationFileCheck(ofBrokerAt: socket).run(),
            service: isService ? await BrokerService.state() : nil
        )
    }

    static func explain(
        _ error: ClientError,
        configuration: ConfigurationFileCheck.Result,
        service: BrokerService.State?
    ) -> CLIError? {
        if case .invalid(let errors) = configuration {
            let start = service == nil ? "start `patchbayd`" : "`sudo systemctl restart patchbayd`"
            return CLIError.configuration(
                "\(error.description), because its configuration is invalid",
                candidates: errors,
                try: "correct the file, then \(start)"
            )
        }
        guard let service, service.active != "active" else { return nil }
        var cause = "\(error.description): the service patchbayd is \(service.active)"
        if service.status.hasPrefix("error: ") { cause += ", \(service.status)" }
        let log = "sudo journalctl -u patchbayd -n 20"
        let start = "sudo systemctl \(service.active == "failed" ? "restart" : "start") patchbayd"
        return CLIError.notReachable(cause, try: service.active == "failed" ? "\(start); its log: `\(log)`" : start)
    }
}
