/// The trials of a run and their sizes.
struct BenchmarkPlan: Sendable {
    let rounds: Int
    let topics: Set<Topic>
    let beds: [TestBed.Kind]
    /// True for a functional check of a few seconds whose figures mean nothing.
    let isQuick: Bool

    /// Returns the trials on a test bed, in order.
    func trials(on bed: TestBed.Kind) -> [any Trial] {
        all(on: bed).filter { topics.contains($0.topic) }
    }

    /// Returns the order of a round: rotated by one after each pair of rounds, and reversed in every second one.
    static func order<Kind>(of kinds: [Kind], in round: Int) -> [Kind] {
        let rotated = kinds.indices.map { kinds[($0 + round / 2) % kinds.count] }
        return round.isMultiple(of: 2) ? rotated : rotated.reversed()
    }

    private func all(on bed: TestBed.Kind) -> [any Trial] {
        let once: Set<ForwarderKind> = [.tcp, .iproxy, .socat, .patchbay, .endpoint]
        return [
            IntegrityTrial(length: isQuick || bed != .plain ? 4 << 20 : 64 << 20),
            throughput(on: bed),
            RoundTripTrial(count: isQuick ? 200 : 20_000),
            SplitReplyTrial(count: isQuick ? 3 : 30),
            ConnectTrial(count: isQuick ? 20 : 1_000),
            ParallelConnectTrial(count: isQuick ? 2 : 60),
            EnduranceTrial(count: isQuick ? 100 : 10_000),
            BurstTrial(count: 64, bed: nil, kinds: once),
            BurstTrial(count: isQuick ? 70 : 200, bed: nil, kinds: once),
            // Only the plain bed supports more: usbmuxd exits when it runs out of descriptors, and Patchbay stops at
            // 512 streams before that.
            BurstTrial(count: isQuick ? 80 : 2_000, bed: .plain, kinds: [.tcp, .iproxy, .endpoint]),
            IdleTrial(count: isQuick ? 30 : 400, kinds: [.tcp, .iproxy, .socat, .patchbay, .endpoint]),
            IdleTrial(count: isQuick ? 40 : 1_000, kinds: [.tcp, .iproxy, .socat, .endpoint]),
            IdleTrial(count: isQuick ? 50 : 5_000, kinds: [.tcp, .iproxy, .endpoint]),
        ]
    }

    /// Sizes for about 1 s per forwarder. They are smaller where usbmuxd's 30 ms timer slows a reader down.
    private func throughput(on bed: TestBed.Kind) -> ThroughputTrial {
        switch bed {
        case _ where isQuick: ThroughputTrial(up: 4 << 20, down: 1 << 20)
        case .plain: ThroughputTrial(up: 1 << 30, down: 1 << 30)
        case .cable: ThroughputTrial(up: 48 << 20, down: 48 << 20)
        case .unlimited: ThroughputTrial(up: 256 << 20, down: 24 << 20)
        }
    }
}
