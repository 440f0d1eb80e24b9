import Testing

@testable import bench

@Suite struct StatisticsTests {
    @Test(arguments: [([3.0], 3.0), ([9.0, 1.0, 5.0], 5.0), ([4.0, 1.0, 3.0, 2.0], 2.5)])
    func `the median is the middle value or the mean of the two middle values`(figures: [Double], median: Double) {
        #expect(figures.median == median)
    }

    @Test func `an empty array has no median and no percentile`() {
        #expect([Double]().median == nil)
        #expect([Double]().percentile(99) == nil)
    }

    @Test func `a percentile is one of the measured values`() {
        let figures = (1...200).map(Double.init).shuffled()

        #expect(figures.percentile(50) == 100)
        #expect(figures.percentile(99) == 198)
        #expect([7.0].percentile(99) == 7)
    }

    @Test func `ratios use figures of the same round, also after a round without one`() {
        var mine = MeasurementSeries()
        var other = MeasurementSeries()
        for (round, figure) in [(0, 10.0), (2, 9), (3, 8)] { mine.set(figure, in: round) }
        for (round, figure) in [(0, 5.0), (1, 1), (3, 2)] { other.set(figure, in: round) }

        #expect(mine.ratio(to: other).rounds == [2, nil, nil, 4])
        #expect(mine.ratio(to: other).median == 3)
    }

    @Test(arguments: [
        (0.0, "0"), (0.0481, "0.048"), (1.005, "1.00"), (2.5, "2.50"), (44.04, "44.0"), (999.6, "1000"),
        (5_000, "5,000"), (1_234_567, "1,234,567"), (10_011, "10,011"),
    ])
    func `numbers are rounded to three significant digits`(number: Double, text: String) {
        #expect(number.shown == text)
    }
}

@Suite struct BenchmarkOrderTests {
    @Test func `each forwarder runs once in each round, and not always after the same one`() {
        let kinds = ["a", "b", "c"]
        let orders = (0..<6).map { BenchmarkPlan.order(of: kinds, in: $0) }

        #expect(orders.allSatisfy { $0.sorted() == kinds })
        #expect(orders[0] == ["a", "b", "c"] && orders[1] == ["c", "b", "a"] && orders[2] == ["b", "c", "a"])
        for kind in kinds {
            let before = orders.compactMap { order in
                order.firstIndex(of: kind).flatMap { $0 > 0 ? order[$0 - 1] : nil }
            }
            #expect(Set(before).count == 2)
        }
    }
}
