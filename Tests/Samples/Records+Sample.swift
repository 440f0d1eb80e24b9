package import FoundationEssentials
package import Model

extension Grant {
    /// A grant that does not end during a test.
    package static func sample(
        _ id: String = "g1",
        name: String = "agent",
        _ permissions: Permissions = Permissions([.registryRead], on: .all),
        binding: GrantBinding = .bearer,
        createdAt: Date = .epoch,
        expiresAt: Date = .distantFuture,
        endReason: EndReason? = nil
    ) -> Grant {
        Grant(
            id: id,
            name: SanitizedText(name),
            permissions: permissions,
            binding: binding,
            parent: nil,
            invite: nil,
            createdAt: createdAt,
            expiresAt: expiresAt,
            lastUsedAt: createdAt,
            idleSeconds: 600,
            endReason: endReason
        )
    }
}

extension Lease {
    /// A lease of an endpoint, without its phone.
    package static func sample(
        _ id: String = "l1",
        of endpoint: EndpointID = "shop",
        device: UDID? = nil,
        holder: String = "agent",
        isOwn: Bool = true,
        note: String? = nil,
        seconds: Int = 600,
        createdAt: Date = .epoch,
        expiresAt: Date? = nil
    ) -> Lease {
        Lease(
            id: id,
            endpoint: endpoint,
            device: device,
            holder: SanitizedText(holder),
            isOwn: isOwn,
            note: note.map { SanitizedText($0) },
            seconds: seconds,
            createdAt: createdAt,
            expiresAt: expiresAt,
            waiting: 0
        )
    }
}

extension Device {
    /// A phone on a cable.
    package static func sample(
        _ udid: UDID = .sample,
        _ transport: Transport = .usb,
        name: String? = nil,
        attachedAt: Date = .epoch
    ) -> Device {
        var device = Device(udid: udid, transport: transport, attachedAt: attachedAt)
        device.name = name.map { SanitizedText($0) }
        return device
    }
}

extension Tunnel {
    /// A tunnel of root from a free port to port 22 of a phone.
    package static func sample(
        _ id: String = "t1",
        spec: TunnelSpec = TunnelSpec(local: .tcp(host: nil, port: 0), target: .device(udid: .sample, port: 22)),
        owner: UInt32 = 0,
        state: State = .active,
        listenAddresses: [ListenAddress] = [],
        createdAt: Date = .epoch
    ) -> Tunnel {
        Tunnel(id: id, spec: spec, owner: owner, state: state, listenAddresses: listenAddresses, createdAt: createdAt)
    }
}
