import ArgumentParser
import Model

/// The options that select the clients that may redeem an invite.
struct InviteAudienceOptions: ParsableArguments {
    @Flag(name: .customLong("remote"), help: "Invite a client on another machine that runs `patchbay join`.")
    var isRemote = false
    @Flag(
        name: .customLong("bearer"),
        help: "Invite a client on another machine that can send only a token, such as an MCP client or a container."
    )
    var isBearer = false
    @Flag(
        name: .customLong("device"),
        help: "Invite an app that registers itself; its grant lives for 30 days and gives only endpoint.register."
    )
    var isDevice = false
    @Option(
        help: ArgumentHelp(
            "Put this address of the broker into the pairing string. Default: that of the default route.",
            valueName: "address"
        )
    )
    var host: String?

    /// Nil for an invite for this machine.
    var use: InviteUse? { isDevice ? .device : isBearer ? .bearer : isRemote ? .remote : nil }

    func validate() throws {
        if [isRemote, isBearer, isDevice].count(where: \.self) > 1 {
            throw ValidationError("--remote, --bearer and --device exclude each other.")
        }
        guard let host else { return }
        guard use != nil else { throw ValidationError("--host needs --remote, --bearer or --device.") }
        guard PairingString.isHost(host) else {
            throw ValidationError("--host must be a host name or an address, without brackets and port.")
        }
    }
}
