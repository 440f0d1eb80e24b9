/// The results of one test bed as a Markdown table with aligned columns.
struct ResultTable {
    enum Detail {
        /// Medians, with the lowest and the highest figure.
        case spreads
        case medians
    }

    private static let none = "–"

    let text: String

    /// Creates the table; nil if nothing was measured on that bed.
    init?(_ results: Results, bed: TestBed.Kind, detail: Detail) {
        let lines = results.lines.filter { $0.bed == bed }
        guard !lines.isEmpty else { return nil }
        let kinds = ForwarderKind.allCases.filter { kind in lines.contains { $0.series(of: kind) != nil } }
        var rows = [[bed.rawValue] + kinds.map(\.rawValue) + ["Patchbay : iproxy", "Patchbay : direct"]]
        for line in lines {
            let figures = kinds.map { Self.cell(line.series(of: $0), detail) }
            let isCount = line.metric.unit.isEmpty
            let ratios = [ForwarderKind.reference, .mux].map { reference in
                isCount ? "" : Self.cell(line.ratio(of: .patchbay, to: reference), detail)
            }
            rows.append([line.metric.title] + figures + ratios)
        }
        let notes = lines.flatMap(\.remarks).map { "- \($0)" }
        text = Self.aligned(rows) + (notes.isEmpty ? "" : "\n" + notes.joined(separator: "\n") + "\n")
    }

    private static func cell(_ series: MeasurementSeries?, _ detail: Detail) -> String {
        guard let series, let median = series.median else { return none }
        guard detail == .spreads, let low = series.lowest, let high = series.highest, low != high else {
            return median.shown
        }
        return "\(median.shown) (\(low.shown)–\(high.shown))"
    }

    private static func aligned(_ rows: [[String]]) -> String {
        let widths = (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        func row(_ cells: [String]) -> String {
            let padded = zip(cells, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }
            return "| \(padded.joined(separator: " | ")) |\n"
        }
        let rule = row(widths.map { String(repeating: "-", count: $0) })
        return rows.prefix(1).map(row).joined() + rule + rows.dropFirst().map(row).joined()
    }
}
