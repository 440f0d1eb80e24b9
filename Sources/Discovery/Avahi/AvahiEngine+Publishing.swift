import CAvahi
import Logging
import Model

/// How the engine brings about what the board asks for.
extension AvahiEngine {
    var nextAdvertStep: ContinuousClock.Instant? { adverts.values.compactMap(\.deadline).min() }

    /// - Parameter isReady: Whether the daemon publishes now.
    func advertise(isReady: Bool) {
        let wishes = board.takeWishes()
        let wanted = Set(wishes.map(\.id))
        for id in adverts.keys where !wanted.contains(id) {
            connection?.free(.group(id))
            adverts[id] = nil
        }
        for (id, spec) in wishes {
            var advert = adverts[id] ?? AdvertisementStateMachine(spec, alternative: AvahiString.alternative)
            advert.want(spec.txt)
            if isReady, let connection { advance(&advert, id, on: connection) }
            adverts[id] = advert
            board.report(id, progress(of: advert, isReady: isReady))
        }
        board.leftAll(but: wanted)
        table.own(
            PublishedServices(
                services: Set(
                    adverts.values.filter { $0.phase == .published || $0.phase == .registering }
                        .map { PublishedServices.Service(name: Array($0.name.utf8), type: $0.wanted.type.text) }
                ),
                host: hostName
            )
        )
    }

    func handleGroup(_ group: AvahiEvent.Group, _ id: String) {
        guard var advert = adverts[id] else { return }
        switch group {
        case .established:
            advert.established()
            logger.info(
                "advertised",
                metadata: ["id": "\(id)", "name": "\(SanitizedText(advert.name))", "type": "\(advert.wanted.type)"]
            )
        case .collided: advert.collided()
        case .failed(let code):
            if isFault(code) { return }
            advert.failed("Avahi says: \(AvahiString.error(code))")
        }
        adverts[id] = advert
    }

    /// avahi-daemon settles its host name anew: what points to the old one is taken back.
    func withdrawAdverts() {
        for id in adverts.keys {
            connection?.withdraw(id)
            adverts[id]?.withdrawn()
        }
    }

    /// One call, or as many as there are names to try.
    ///
    /// A name is looked for before it is first used. Avahi's own probes do not always find it: who announced a record less than
    /// a second ago does not answer them, and in the conflict that follows the other one may have to change its name.
    private func advance(_ advert: inout AdvertisementStateMachine, _ id: String, on connection: AvahiConnection) {
        while let step = advert.step(now: .now) {
            if step == .publish, !advert.wasPublished {
                if reconciliation != nil { return }
                if table.isTaken(advert.name, advert.wanted.type) {
                    advert.collided()
                    continue
                }
            }
            let code: CInt
            switch step {
            case .publish: code = connection.publish(id, name: advert.name, spec: advert.wanted)
            case .updateText: code = connection.updateText(id, name: advert.name, spec: advert.wanted)
            }
            switch Int(code) {
            case Int(AVAHI_OK): step == .publish ? advert.committed(now: .now) : advert.textUpdated(now: .now)
            case Int(AVAHI_ERR_COLLISION): advert.collided()
            case _ where connection.fault != nil: return
            default: advert.failed("Avahi says: \(AvahiString.error(code))")
            }
        }
    }

    private func progress(of advert: AdvertisementStateMachine, isReady: Bool) -> AdvertisementStore.Progress {
        var progress = AdvertisementStore.Progress(
            state: .waiting,
            finalName: SanitizedText(advert.name),
            isSettled: advert.isSettled
        )
        switch advert.phase {
        case .waiting where connection == nil || !isReady:
            progress.reason = "Avahi is not there; it is published as soon as it is"
            // A daemon that settles its host name is done within a second: worth the wait.
            progress.isSettled = isAbsent
        case .waiting, .registering: progress.state = .registering
        case .published: progress.state = .published
        case .failed(let reason):
            progress.state = .failed
            progress.reason = reason
        }
        return progress
    }
}
