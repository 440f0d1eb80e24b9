/// A text table, aligned by the terminal width of its characters.
struct Table {
    struct Cell {
        let text: String
        var style = ANSIStyle.plain

        init(_ text: String, _ style: ANSIStyle = .plain) {
            self.text = text
            self.style = style
        }
    }

    /// The behaviour of a column that does not fit the terminal.
    enum Layout {
        case fixed
        /// The column is left out where the table does not fit, before any other.
        case optional
        /// The column may be truncated.
        case flexible
        /// The column breaks its texts into several lines, between words if possible.
        case wraps
    }

    private let columns: [(title: String, layout: Layout)]
    let rows: [[Cell]]

    /// The minimum width of a truncated column.
    private static let minWidth = 6
    private static let gap = 2

    init<Item>(of items: [Item], _ columns: [TableColumn<Item>]) {
        let columns = columns.filter(\.isShown)
        self.columns = columns.map { ($0.title, $0.layout) }
        rows = items.map { item in columns.map { $0.cell(item) } }
    }

    /// Formats the title and the rows, without trailing spaces.
    ///
    /// - Parameters:
    ///   - width: The terminal's width; nil disables truncation, for pipes and files.
    ///   - isColoured: True to apply the styles.
    /// - Returns: One string without a final line break.
    func text(width: Int?, isColoured: Bool) -> String {
        if let width, let narrowed = narrowed(to: width) { return narrowed.text(width: width, isColoured: isColoured) }
        let titles = columns.map { Cell($0.title, .bold) }
        let widths = fitted(to: width)
        return ([titles] + rows).flatMap { wrapped($0, widths) }
            .map { line($0, widths: widths, isColoured: isColoured) }.joined(separator: "\n")
    }

    private init(columns: [(title: String, layout: Layout)], rows: [[Cell]]) {
        (self.columns, self.rows) = (columns, rows)
    }

    /// Returns the table without the columns for which there is no room, from the right; nil if it has all of them.
    ///
    /// The first column has the name of a row, and stays whole.
    private func narrowed(to width: Int) -> Table? {
        let widths = zip(columns, self.widths).map { column, width in
            switch column.layout {
            case .fixed, .optional: width
            case .flexible: min(width, Self.minWidth)
            case .wraps: column.title.columns
            }
        }
        var kept = Array(columns.indices)
        for layout in [Layout.optional, .flexible] {
            for index in columns.indices.dropFirst().reversed() where columns[index].layout == layout {
                guard kept.map({ widths[$0] }).reduce(0, +) + Self.gap * (kept.count - 1) > width else { break }
                kept.removeAll { $0 == index }
            }
        }
        guard kept.count < columns.count else { return nil }
        return Table(columns: kept.map { columns[$0] }, rows: rows.map { row in kept.map { row[$0] } })
    }

    /// The width of each column if the terminal has room for all.
    private var widths: [Int] {
        columns.indices.map { index in
            ([columns[index].title] + rows.map { $0[index].text }).map(\.columns).max() ?? 0
        }
    }

    /// Returns the lines of a row.
    private func wrapped(_ cells: [Cell], _ widths: [Int]) -> [[Cell]] {
        let texts = zip(cells, zip(columns, widths)).map { cell, column in
            column.0.layout == .wraps ? cell.text.wrapped(to: column.1) : [cell.text]
        }
        return (0..<(texts.map(\.count).max() ?? 1)).map { line in
            zip(cells, texts).map { line < $1.count ? Cell($1[line], $0.style) : Cell("") }
        }
    }

    private func line(_ cells: [Cell], widths: [Int], isColoured: Bool) -> String {
        let last = cells.lastIndex { !$0.text.isEmpty } ?? 0
        return zip(cells, widths).prefix(last + 1).enumerated().map { index, pair in
            let (cell, width) = pair
            let text = cell.text.cut(to: width)
            let padding = index == last ? 0 : width + Self.gap - text.columns
            return cell.style.paint(text, isOn: isColoured) + String(repeating: " ", count: padding)
        }.joined()
    }

    private func fitted(to width: Int?) -> [Int] {
        var widths = widths
        guard let width else { return widths }
        // A word is broken only if the table does not fit otherwise.
        let words = columns.indices.map { index in
            rows.flatMap { $0[index].text.split(separator: " ") }.map { String($0).columns }.max() ?? 0
        }
        for breaksWords in [false, true] {
            let least = columns.indices.map { index in
                guard columns[index].layout == .wraps else {
                    return columns[index].layout == .flexible ? Self.minWidth : .max
                }
                return max(columns[index].title.columns, breaksWords ? 0 : words[index])
            }
            while widths.reduce(0, +) + Self.gap * (widths.count - 1) > width {
                let candidates = columns.indices.filter { widths[$0] > least[$0] }
                guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
                widths[widest] -= 1
            }
        }
        return widths
    }
}

/// A column of a table: its title, its behaviour, and the cell of each row.
struct TableColumn<Item> {
    let title: String
    let layout: Table.Layout
    /// False to leave out the column.
    let isShown: Bool
    let cell: (Item) -> Table.Cell

    init(
        _ title: String,
        _ layout: Table.Layout,
        isShown: Bool = true,
        style: @escaping (Item) -> ANSIStyle = { _ in .plain },
        _ text: @escaping (Item) -> String
    ) {
        (self.title, self.layout, self.isShown) = (title, layout, isShown)
        cell = { Table.Cell(text($0), style($0)) }
    }

    init(
        _ title: String,
        style: @escaping (Item) -> ANSIStyle = { _ in .plain },
        _ text: @escaping (Item) -> String
    ) {
        self.init(title, .fixed, style: style, text)
    }

    /// Creates a fixed column of cells.
    init(_ title: String, isShown: Bool, cells: @escaping (Item) -> Table.Cell) {
        (self.title, self.isShown, layout, cell) = (title, isShown, .fixed, cells)
    }
}

/// The terminal width of a character: 0, 1 or 2 columns.
///
/// The ranges are the blocks with East_Asian_Width Wide or Fullwidth (Unicode annex 11). Emoji have a property.
extension Character {
    var columns: Int {
        let scalars = unicodeScalars
        // VARIATION SELECTOR-16 turns a text emoji into an emoji of two columns.
        if scalars.count > 1, scalars.contains("\u{FE0F}"), scalars.first?.properties.isEmoji == true { return 2 }
        return scalars.map(Self.columns).max() ?? 0
    }

    private static func columns(_ scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value) ? 0 : 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control, .lineSeparator, .paragraphSeparator: return 0
        default: break
        }
        if scalar.properties.isEmojiPresentation { return 2 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F,
            0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6,
            0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x20000...0x3FFFD:
            return 2
        // Hangul vowels and finals combine with the preceding wide consonant.
        case 0x1160...0x11FF, 0xD7B0...0xD7FF: return 0
        default: return 1
        }
    }
}

extension String {
    /// The terminal width of the text in columns.
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// Truncates the text to a number of columns; an ellipsis marks the truncation.
    func cut(to limit: Int) -> String {
        guard columns > limit else { return self }
        guard limit > 0 else { return "" }
        var kept = ""
        var width = 0
        for character in self {
            width += character.columns
            guard width < limit else { break }
            kept.append(character)
        }
        return kept + "…"
    }

    /// Breaks the text into lines of at most a number of columns, between words if possible.
    func wrapped(to limit: Int) -> [String] {
        guard columns > limit else { return [self] }
        var lines = [""]
        for word in split(separator: " ").map(String.init) {
            if let line = lines.last, line.isEmpty || line.columns + 1 + word.columns <= limit {
                lines[lines.count - 1] += (line.isEmpty ? "" : " ") + word
            } else {
                lines.append(word)
            }
            while let line = lines.last, line.columns > limit, limit > 1 {
                // Keeps one column less than `cut`, which ends with an ellipsis.
                let kept = line.prefix(line.cut(to: limit).count - 1)
                guard !kept.isEmpty else { break }
                lines[lines.count - 1] = String(kept)
                lines.append(String(line.dropFirst(kept.count)))
            }
        }
        return lines
    }

    /// Appends spaces up to a number of columns.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: Swift.max(0, width - columns)) }
}
