import FoundationEssentials
import Model

/// An address that an advertisement claims, on the link where it was received. Without an address, the claimed machine.
///
/// mDNS has no sender: any machine on the link can claim any address. Only the interface is a fact.
package struct ClaimedAddress: Hashable, Sendable, Codable {
    package let address: String
    package let interface: String?

    /// Returns whether a machine that reports one of the two addresses withdraws the other one by that.
    fileprivate func isReplaced(by other: ClaimedAddress) -> Bool {
        interface == other.interface && address.contains(":") == other.address.contains(":")
    }
}

extension Sighting {
    /// The addresses of an advertisement; its machine if none of them may be dialled.
    var claimedAddresses: [ClaimedAddress] {
        let addresses = routes.compactMap { route -> ClaimedAddress? in
            guard case .network(let network) = route else { return nil }
            return ClaimedAddress(address: network.address, interface: network.interface)
        }
        if !addresses.isEmpty { return addresses }
        return machine.map { [ClaimedAddress(address: "host \($0.text.lowercased())", interface: nil)] } ?? []
    }
}

/// The last place and name of an advertised app. It recognises the app when its machine has another name.
package struct AdvertisedPlace: Hashable, Sendable, Codable {
    /// The time for which an address identifies a device that has left, in seconds: one day.
    ///
    /// A DHCP server keeps an address for its client for a time, about a day on home routers. Then it assigns the same one
    /// again if it can (RFC 2131, section 4.3.1).
    static let addressLifetime: TimeInterval = 86_400

    /// The instance name, without the suffix of a name conflict.
    let instance: String
    let role: SanitizedText
    /// The last addresses for each interface and IP version.
    private(set) var addresses: [ClaimedAddress]
    /// The time when the last source stopped to report the app, or when this value was saved. Nil while it is seen.
    var seenUntil: Date?

    init(_ sighting: Sighting) {
        instance = BonjourInstance.withoutConflictSuffix(sighting.name.text)
        role = sighting.role
        addresses = sighting.claimedAddresses
    }

    /// The place of an endpoint that an earlier version saved. Nil if that version saved no address.
    init?(of record: PersistedEndpoint) {
        addresses = record.endpoint.routes.compactMap { route in
            guard case .network(let network) = route.route, network.machine != nil else { return nil }
            return ClaimedAddress(address: network.address, interface: network.interface)
        }
        guard !addresses.isEmpty else { return nil }
        instance = BonjourInstance.withoutConflictSuffix(record.endpoint.name.text)
        role = record.keys.first?.role ?? SanitizedText("")
    }

    /// Returns the place after a further sighting. Addresses that the sighting does not replace stay.
    func updated(by sighting: Sighting) -> AdvertisedPlace {
        var place = AdvertisedPlace(sighting)
        let new = place.addresses
        place.addresses += addresses.filter { old in !new.contains { $0 == old || old.isReplaced(by: $0) } }
        return place
    }

    /// Returns whether a sighting has one of the addresses while they still identify the device.
    func isCurrent(for sighting: Sighting, at now: Date) -> Bool {
        guard seenUntil.map({ now.timeIntervalSince($0) <= Self.addressLifetime }) ?? true else { return false }
        return !Set(addresses).isDisjoint(with: sighting.claimedAddresses)
    }
}

extension EndpointMatcher {
    /// Returns the endpoint of the same app and instance that was last advertised at one of the sighting's addresses.
    ///
    /// Such an advertisement is the same device if its machine has the same name or a random one. So is one with a name
    /// that a responder may choose after a conflict. The endpoint must be free: no source sees it, or only other
    /// interfaces or IP versions report the same instance. An instance name has one SRV record, so those reports will
    /// follow (RFC 6763, section 4.1).
    func endpointAtSameAddress(as sighting: Sighting) -> EndpointID? {
        guard sighting.id.source == .bonjour else { return nil }
        let fits = Set(sighting.claimedAddresses.flatMap { endpoints.ids(at: $0) }).filter { id in
            guard let entry = endpoints[id], entry.record.source == .bonjour, let place = entry.record.place,
                entry.record.endpoint.kind == sighting.kind, entry.record.endpoint.app == sighting.app,
                place.role == sighting.role, place.isCurrent(for: sighting, at: now),
                place.instance == BonjourInstance.withoutConflictSuffix(sighting.name.text)
            else { return false }
            let others = sightings.sightings(on: entry.servers.filter { !$0.isAnchor })
            return others.allSatisfy { $0.name == sighting.name && $0.id != sighting.id }
                && !entry.record.contradicts(sighting)
                && entry.record.machineNames.contains { sighting.machineName.mayBeRenamed(from: $0) }
        }
        return fits.filter { endpoints[$0]?.record.machine == sighting.machine?.text }.min() ?? fits.min()
    }

    /// Returns whether an instance that changed its SRV record in place is still on the same device. Another device with
    /// the same instance name has another address.
    func isOnSameDevice(_ sighting: Sighting, as record: PersistedEndpoint) -> Bool {
        guard !record.contradicts(sighting) else { return false }
        return record.machine == sighting.machine?.text || record.place?.isCurrent(for: sighting, at: now) ?? false
    }
}

extension Sighting {
    var machineName: MachineName { MachineName(machine?.text ?? "") }

    /// The ID of the device in the TXT record (`deviceId`), for every kind but the Dart VM service.
    ///
    /// The kind `dart-vm` has the key `device_id` for the phone behind Flutter's tool. It is part of the role.
    var deviceID: String? {
        guard id.source == .bonjour, kind != .dartVM else { return nil }
        return (txt["deviceId"] ?? txt["device_id"]).flatMap { $0.isEmpty ? nil : SanitizedText($0).text.lowercased() }
    }
}

extension PersistedEndpoint {
    /// The names of the machines on which the app was advertised.
    var machineNames: Set<MachineName> {
        let known = keys.lazy.compactMap(\.machineName).map { MachineName($0) }
        return Set(known).union(machine.map { [MachineName($0)] } ?? [])
    }

    /// Returns whether the app was advertised with another device ID.
    func contradicts(_ sighting: Sighting) -> Bool {
        guard let device = sighting.deviceID else { return false }
        let known = keys.compactMap(\.advertisedDevice)
        return !known.isEmpty && !known.contains { $0 == device }
    }

    /// Returns the record with the time until which a visible app was certainly seen.
    func saved(at now: Date) -> PersistedEndpoint {
        guard place != nil, place?.seenUntil == nil else { return self }
        var record = self
        record.place?.seenUntil = now
        return record
    }

    /// Returns the record with the identity keys of this version.
    ///
    /// Earlier versions left out a number at the end of the machine name, and did not decode the name. Their keys stay, so
    /// that the app is found under each name that it was found under before.
    func migrated() -> PersistedEndpoint {
        guard source == .bonjour else { return self }
        var record = self
        record.machine = machine.map { MachineName.decoding($0) }
        record.endpoint.location.machine = endpoint.location.machine.map {
            SanitizedText(MachineName.decoding($0.text), limit: 255)
        }
        record.keys = keys.map(\.decoded)
        if let name = (record.machine ?? endpoint.location.machine?.text).map({ MachineName($0) }), !name.isRandom {
            let exact = record.keys.filter { $0.machineName != nil }.map { $0.on(machine: name) }
            record.keys += Set(exact).subtracting(record.keys)
        }
        if place == nil { record.place = AdvertisedPlace(of: self) }
        return record
    }
}
