import Model

/// The arguments in the entry of an MCP client that select the broker.
struct BrokerArguments: Equatable {
    let arguments: [String]
    /// The variable that selects the broker in this shell, if the entry does not have its value.
    private(set) var omittedVariable: String?

    /// - Parameters:
    ///   - socket: The value of `--socket`.
    ///   - broker: The value of `--broker`.
    ///   - isProject: True for the file of a project, which other users and machines share.
    ///   - environment: The environment of the process.
    /// - Throws: `CLIError` for an invalid broker, or for both options.
    init(socket: String?, broker: String?, isProject: Bool, environment: [String: String]) throws(CLIError) {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if socket != nil, broker != nil {
            throw .usage("--socket and --broker exclude each other", try: "remove one of the two options")
        }
        let isSelected = socket != nil || broker != nil
        let (ownBroker, ownSocket) = (variable("PATCHBAY_BROKER"), variable(BrokerSocketPath.variable))
        guard isSelected || !isProject else {
            arguments = []
            omittedVariable = ownBroker != nil ? "PATCHBAY_BROKER" : ownSocket.map { _ in BrokerSocketPath.variable }
            return
        }
        if let broker = broker ?? (isSelected ? nil : ownBroker) {
            if !JoinedBroker.isName(broker) { _ = try BrokerAddressArgument.address(broker) }
            arguments = ["--broker", broker]
        } else {
            arguments = (socket ?? ownSocket).map { ["--socket", GlobalOptions.path(of: $0)] } ?? []
        }
    }
}
