/// Rows in columns, aligned by what a terminal shows.
struct Table {
    struct Cell {
        let text: String
        var style = ANSIStyle.plain

        init(_ text: String, _ style: ANSIStyle = .plain) {
            self.text = text
            self.style = style
        }
    }

    struct Column {
        let title: String
        /// Whether its text may be cut where the terminal is too narrow for all of it.
        var isFlexible = false
    }

    let columns: [Column]
    var rows: [[Cell]] = []

    /// No column is cut below this.
    private static let narrowest = 6
    private static let gap = 2

    /// The lines, title first, without spaces at their ends.
    ///
    /// - Parameters:
    ///   - width: The terminal's width; nil keeps everything whole, for pipes and files.
    ///   - isColoured: Whether styles are shown.
    /// - Returns: One string without a final line break.
    func text(width: Int?, isColoured: Bool) -> String {
        let titles = columns.map { Cell($0.title, .bold) }
        let widths = fitted(to: width)
        return ([titles] + rows).map { line($0, widths, isColoured) }.joined(separator: "\n")
    }

    private func line(_ cells: [Cell], _ widths: [Int], _ isColoured: Bool) -> String {
        let last = cells.lastIndex { !$0.text.isEmpty } ?? 0
        return zip(cells, widths).prefix(last + 1).enumerated().map { index, pair in
            let (cell, width) = pair
            let text = cell.text.cut(to: width)
            let padding = index == last ? 0 : width + Self.gap - text.columns
            return cell.style.paint(text, isOn: isColoured) + String(repeating: " ", count: padding)
        }.joined()
    }

    private func fitted(to width: Int?) -> [Int] {
        var widths = columns.indices.map { index in
            ([columns[index].title] + rows.map { $0[index].text }).map(\.columns).max() ?? 0
        }
        guard let width else { return widths }
        while widths.reduce(0, +) + Self.gap * (widths.count - 1) > width {
            let candidates = columns.indices.filter { columns[$0].isFlexible && widths[$0] > Self.narrowest }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
        }
        return widths
    }
}
