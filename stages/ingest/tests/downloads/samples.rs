//! The samples: the vendors' forms of three bars.

/// The days of the bars.
pub(crate) const DAYS: [&str; 3] = ["2024-01-02", "2024-01-03", "2024-01-04"];

/// Open, high, low, close, volume and adjusted close of the bars.
pub(crate) const VALUES: [[f64; 6]; 3] = [
    [187.15, 188.44, 183.89, 185.64, 82_490_000.0, 184.29],
    [184.22, 185.88, 183.43, 184.25, 58_410_000.0, 182.91],
    [182.15, 183.09, 180.88, 181.91, 71_980_000.0, 180.59],
];

/// A form of the bars.
pub(crate) struct Sample {
    pub layout: &'static str,
    pub file: &'static str,
    pub symbol: &'static str,
    /// The letters of the columns with values: open, high, low, close, volume, adjusted close.
    pub columns: &'static str,
    /// The text before the rows: of a table of text, all lines up to the header.
    pub head: &'static str,
    /// A row: `{o}` to `{a}` for values, `{o,}` with a decimal comma, `{v/100}` in lots, `{vM}` in millions,
    /// `{d%Y-%m-%d}` for the day, `{s}`, `{ms}`, `{us}` for its epoch, `{s+14.5}` for that of an hour.
    pub row: &'static str,
    /// The text between rows, and after the last.
    pub between: &'static str,
    pub foot: &'static str,
}

/// Where a column stands: `{x…}` of [`Sample::row`].
fn filled(part: &str, row: usize) -> String {
    let day = chrono::NaiveDate::parse_from_str(DAYS[row], "%Y-%m-%d").unwrap();
    if let Some(format) = part.strip_prefix('d') {
        return day.format(format).to_string();
    }
    let epoch = day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
    if let Some(rest) = part.strip_prefix("ms") {
        return (epoch * 1000 + hours(rest) * 1000).to_string();
    }
    if let Some(rest) = part.strip_prefix("us") {
        return (epoch * 1_000_000 + hours(rest) * 1_000_000).to_string();
    }
    if let Some(rest) = part.strip_prefix('s') {
        return (epoch + hours(rest)).to_string();
    }
    let value = VALUES[row]["ohlcva".find(&part[..1]).unwrap()];
    match &part[1..] {
        "" => value.to_string(),
        "," => value.to_string().replace('.', ","),
        "/100" => (value / 100.0).to_string(),
        "M" => format!("{:.2}M", value / 1e6),
        "M," => format!("{:.2}M", value / 1e6).replace('.', ","),
        other => panic!("{other}"),
    }
}

/// Seconds of `+14.5`.
fn hours(text: &str) -> i64 {
    let hours: f64 = text.trim_start_matches('+').parse().unwrap_or(0.0);
    (hours * 3600.0) as i64
}

fn fill(template: &str, row: usize) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}') {
            // Braces of JSON are doubled.
            _ if after.starts_with('{') => {
                out.push('{');
                rest = &after[1..];
            }
            Some((part, after)) => {
                out.push_str(&filled(part, row));
                rest = after;
            }
            None => panic!("{template}"),
        }
    }
    out + rest
}

impl Sample {
    /// The whole file.
    pub(crate) fn text(&self) -> String {
        if !self.row.is_empty() {
            let rows: Vec<String> = (0..3).map(|row| fill(self.row, row)).collect();
            return format!("{}{}{}", self.head, rows.join(self.between), self.foot);
        }
        // Lists: `[c]` stands for all values of a column.
        let mut text = self.head.to_owned();
        for part in ["o", "h", "l", "c", "v", "a", "s", "s+14.5"] {
            let list: Vec<String> = (0..3).map(|row| filled(part, row)).collect();
            text = text.replace(&format!("[{part}]"), &format!("[{}]", list.join(",")));
        }
        text
    }

    /// The value of a column in a row.
    pub(crate) fn value(&self, letter: char, row: usize) -> f64 {
        VALUES[row]["ohlcva".find(letter).unwrap()]
    }

    pub(crate) fn is_csv(&self) -> bool {
        !self.head.starts_with(['{', '[']) && !self.row.is_empty()
    }

    pub(crate) fn has_no_header(&self) -> bool {
        self.is_csv() && self.head.is_empty()
    }

    /// The template of a column of delimited text.
    pub(crate) fn row_template(&self, separator: char, at: usize) -> Option<&'static str> {
        let mut quoted = false;
        let between = |c: char| {
            quoted ^= matches!(c, '"' | '{' | '}');
            c == separator && !quoted
        };
        self.row.split(between).nth(at)
    }
}

const fn csv(
    layout: &'static str,
    [file, symbol, columns]: [&'static str; 3],
    head: &'static str,
    row: &'static str,
) -> Sample {
    Sample {
        layout,
        file,
        symbol,
        columns,
        head,
        row,
        between: "\n",
        foot: "\n",
    }
}

const fn json(
    layout: &'static str,
    [file, symbol, columns]: [&'static str; 3],
    head: &'static str,
    row: &'static str,
    foot: &'static str,
) -> Sample {
    Sample {
        layout,
        file,
        symbol,
        columns,
        head,
        row,
        between: ",",
        foot,
    }
}

pub(crate) const SAMPLES: &[Sample] = &[
    csv(
        "yahoo",
        ["AAPL.csv", "AAPL", "ohlcva"],
        "Date,Open,High,Low,Close,Adj Close,Volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{a},{v}",
    ),
    csv(
        "yfinance_history",
        ["MSFT.csv", "MSFT", "ohlcv"],
        "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n",
        "{d%Y-%m-%d} 00:00:00-05:00,{o},{h},{l},{c},{v},0.0,0.0",
    ),
    csv(
        "yfinance_history_unadjusted",
        ["MSFT.csv", "MSFT", "ohlcva"],
        "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits\n",
        "{d%Y-%m-%d} 00:00:00-05:00,{o},{h},{l},{c},{a},{v},0.0,0.0",
    ),
    csv(
        "yfinance_panel",
        ["panel.csv", "AAPL", "ohlcva"],
        "Date,Ticker,Adj Close,Close,High,Low,Open,Volume\n",
        "{d%Y-%m-%d},AAPL,{a},{c},{h},{l},{o},{v}",
    ),
    csv(
        "yfinance_panel",
        ["sp500_stocks.csv", "AAPL", "ohlcva"],
        "Date,Symbol,Adj Close,Close,High,Low,Open,Volume\n",
        "{d%Y-%m-%d},AAPL,{a},{c},{h},{l},{o},{v}",
    ),
    json(
        "yahoo_chart_json",
        ["chart.json", "AAPL", "ohlcva"],
        "{\"chart\":{\"result\":[{\"meta\":{\"currency\":\"USD\",\"symbol\":\"AAPL\",\"exchangeTimezoneName\":\
         \"America/New_York\",\"gmtoffset\":-18000,\"validRanges\":[\"1d\",\"5d\"]},\"timestamp\":[s+14.5],\
         \"indicators\":{\"quote\":[{\"open\":[o],\"high\":[h],\"low\":[l],\"close\":[c],\"volume\":[v]}],\
         \"adjclose\":[{\"adjclose\":[a]}]}}],\"error\":null}}",
        "",
        "",
    ),
    csv(
        "stooq",
        ["aapl.us.txt", "AAPL.US", "ohlcv"],
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>\n",
        "AAPL.US,D,{d%Y%m%d},000000,{o},{h},{l},{c},{v},0",
    ),
    csv(
        "stooq_site",
        ["aapl_us_d.csv", "AAPL", "ohlcv"],
        "Date,Open,High,Low,Close,Volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v}",
    ),
    csv(
        "stooq_site",
        ["cdr_d.csv", "CDR", "ohlcv"],
        "Data,Otwarcie,Najwyzszy,Najnizszy,Zamkniecie,Wolumen\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v}",
    ),
    csv(
        "nasdaq_com",
        ["AAPL.csv", "AAPL", "ohlcv"],
        "Date,Close/Last,Volume,Open,High,Low\n",
        "{d%m/%d/%Y},${c},{v},${o},${h},${l}",
    ),
    csv(
        "investing",
        ["AAPL Historical Data.csv", "AAPL", "ohlcv"],
        "\"Date\",\"Price\",\"Open\",\"High\",\"Low\",\"Vol.\",\"Change %\"\n",
        "\"{d%b %d, %Y}\",\"{c}\",\"{o}\",\"{h}\",\"{l}\",\"{vM}\",\"-0.75%\"",
    ),
    csv(
        "investing_comma",
        ["SAN.csv", "SAN", "ohlcv"],
        "\"Fecha\",\"Último\",\"Apertura\",\"Máximo\",\"Mínimo\",\"Vol.\",\"% var.\"\n",
        "\"{d%d.%m.%Y}\",\"{c,}\",\"{o,}\",\"{h,}\",\"{l,}\",\"{vM,}\",\"-0,08%\"",
    ),
    csv(
        "investing_comma",
        ["PETR4.csv", "PETR4", "ohlcv"],
        "\"Data\",\"Último\",\"Abertura\",\"Máxima\",\"Mínima\",\"Vol.\",\"Var%\"\n",
        "\"{d%d.%m.%Y}\",\"{c,}\",\"{o,}\",\"{h,}\",\"{l,}\",\"{vM,}\",\"2,18%\"",
    ),
    csv(
        "investing_comma",
        ["AIR.csv", "AIR", "ohlcv"],
        "\"Date\",\"Dernier\",\"Ouv.\",\" Plus Haut\",\"Plus Bas\",\"Vol.\",\"Variation %\"\n",
        "\"{d%d/%m/%Y}\",\"{c,}\",\"{o,}\",\"{h,}\",\"{l,}\",\"{vM,}\",\"2,18%\"",
    ),
    csv(
        "investing_east",
        ["600585.csv", "600585", "ohlcv"],
        "\"日期\",\"收盘\",\"开盘\",\"高\",\"低\",\"交易量\",\"涨跌幅\"\n",
        "\"{d%Y-%-m-%-d}\",\"{c}\",\"{o}\",\"{h}\",\"{l}\",\"{vM}\",\"0.16%\"",
    ),
    csv(
        "investing_east",
        ["QQQ.csv", "QQQ", "ohlcv"],
        "\"날짜\",\"종가\",\"시가\",\"고가\",\"저가\",\"거래량\",\"변동 %\"\n",
        "\"{d%Y- %m- %d}\",\"{c}\",\"{o}\",\"{h}\",\"{l}\",\"{vM}\",\"0.08%\"",
    ),
    csv(
        "alpha_vantage",
        ["daily_IBM.csv", "IBM", "ohlcv"],
        "timestamp,open,high,low,close,volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v}",
    ),
    csv(
        "alpha_vantage_adjusted",
        ["daily_adjusted_IBM.csv", "IBM", "ohlcva"],
        "timestamp,open,high,low,close,adjusted_close,volume,dividend_amount,split_coefficient\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{a},{v},0.0000,1.0",
    ),
    json(
        "alpha_vantage_json",
        ["query.json", "IBM", "ohlcv"],
        "{\"Meta Data\":{\"1. Information\":\"Daily Prices\",\"2. Symbol\":\"IBM\",\"5. Time Zone\":\
         \"US/Eastern\"},\"Time Series (Daily)\":{",
        "\"{d%Y-%m-%d}\":{{\"1. open\":\"{o}\",\"2. high\":\"{h}\",\"3. low\":\"{l}\",\"4. close\":\"{c}\",\
         \"5. volume\":\"{v}\"}",
        "}}",
    ),
    json(
        "alpha_vantage_json",
        ["query.json", "IBM", "ohlcva"],
        "{\"Meta Data\":{\"2. Symbol\":\"IBM\"},\"Time Series (Daily)\":{",
        "\"{d%Y-%m-%d}\":{{\"1. open\":\"{o}\",\"2. high\":\"{h}\",\"3. low\":\"{l}\",\"4. close\":\"{c}\",\
         \"5. adjusted close\":\"{a}\",\"6. volume\":\"{v}\",\"7. dividend amount\":\"0.0\",\
         \"8. split coefficient\":\"1.0\"}",
        "}}",
    ),
    csv(
        "tiingo",
        ["AAPL.csv", "AAPL", "ohlcva"],
        "date,close,high,low,open,volume,adjClose,adjHigh,adjLow,adjOpen,adjVolume,divCash,splitFactor\n",
        "{d%Y-%m-%d},{c},{h},{l},{o},{v},{a},1,1,1,1,0.0,1.0",
    ),
    json(
        "tiingo_json",
        ["AAPL.json", "AAPL", "ohlcva"],
        "[",
        "{{\"date\":\"{d%Y-%m-%d}T00:00:00.000Z\",\"close\":{c},\"high\":{h},\"low\":{l},\"open\":{o},\"volume\":{v},\
         \"adjClose\":{a},\"adjHigh\":1,\"adjLow\":1,\"adjOpen\":1,\"adjVolume\":1,\"divCash\":0.0,\
         \"splitFactor\":1.0}",
        "]",
    ),
    json(
        "polygon_aggs_json",
        ["aggs.json", "AAPL", "ohlcv"],
        "{\"ticker\":\"AAPL\",\"queryCount\":3,\"resultsCount\":3,\"adjusted\":true,\"results\":[",
        "{{\"v\":{v},\"vw\":185.9,\"o\":{o},\"c\":{c},\"h\":{h},\"l\":{l},\"t\":{ms+5},\"n\":1}",
        "],\"status\":\"OK\"}",
    ),
    // Days of coins begin at midnight of UTC.
    json(
        "polygon_aggs_json",
        ["aggs.json", "X:BTCUSD", "ohlcv"],
        "{\"ticker\":\"X:BTCUSD\",\"adjusted\":true,\"results\":[",
        "{{\"v\":{v},\"o\":{o},\"c\":{c},\"h\":{h},\"l\":{l},\"t\":{ms}}",
        "],\"status\":\"OK\"}",
    ),
    csv(
        "binance_klines",
        ["BTCUSDT-1d-2024-01.csv", "BTCUSDT", "ohlcv"],
        "",
        "{ms},{o},{h},{l},{c},{v},{ms+24},15313532500.5,1201,41245000,7656766000.2,0",
    ),
    csv(
        "binance_klines",
        ["ETHUSDT-1d-2025-01.csv", "ETHUSDT", "ohlcv"],
        "",
        "{us},{o},{h},{l},{c},{v},{us+24},15313532500.5,1201,41245000,7656766000.2,0",
    ),
    csv(
        "binance_klines",
        ["BTCUSDT-1d-2024-01-02.csv", "BTCUSDT", "ohlcv"],
        "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,\
         taker_buy_quote_volume,ignore\n",
        "{ms},{o},{h},{l},{c},{v},{ms+24},15313532500.5,1201,41245000,7656766000.2,0",
    ),
    json(
        "binance_klines_json",
        ["BTCUSDT.json", "BTCUSDT", "ohlcv"],
        "[",
        "[{ms},\"{o}\",\"{h}\",\"{l}\",\"{c}\",\"{v}\",{ms+24},\"1\",1,\"1\",\"1\",\"0\"]",
        "]",
    ),
    csv(
        "kraken_ohlcvt",
        ["XBTUSD_1440.csv", "XBTUSD", "ohlcv"],
        "",
        "{s},{o},{h},{l},{c},{v},5",
    ),
    json(
        "coinbase_candles",
        ["BTC-USD.json", "BTC-USD", "ohlcv"],
        "{\"candles\":[",
        "{{\"start\":\"{s}\",\"low\":\"{l}\",\"high\":\"{h}\",\"open\":\"{o}\",\"close\":\"{c}\",\
         \"volume\":\"{v}\"}",
        "]}",
    ),
    json(
        "coinbase_candles_list",
        ["coinbase.json", "coinbase", "ohlcv"],
        "[",
        "[{s},{l},{h},{o},{c},{v}]",
        "]",
    ),
    json(
        "bitstamp_json",
        ["ohlc.json", "BTC/USD", "ohlcv"],
        "{\"data\":{\"pair\":\"BTC/USD\",\"ohlc\":[",
        "{{\"timestamp\":\"{s}\",\"open\":\"{o}\",\"high\":\"{h}\",\"low\":\"{l}\",\"close\":\"{c}\",\
         \"volume\":\"{v}\"}",
        "]}}",
    ),
    csv(
        "cryptodatadownload",
        ["Bitstamp_BTCUSD_d.csv", "BTC/USD", "ohlcv"],
        "https://www.CryptoDataDownload.com\nunix,date,symbol,open,high,low,close,Volume BTC,Volume USD\n",
        "{s},{d%Y-%m-%d} 00:00:00,BTC/USD,{o},{h},{l},{c},{v},1",
    ),
    csv(
        "metatrader4",
        ["EURUSD1440.csv", "EURUSD", "ohlcv"],
        "",
        "{d%Y.%m.%d},00:00,{o},{h},{l},{c},{v}",
    ),
    csv(
        "metatrader5",
        ["EURUSD_Daily_202401020000_202401040000.csv", "EURUSD", "ohlcv"],
        "<DATE>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n",
        "{d%Y.%m.%d}\t{o}\t{h}\t{l}\t{c}\t{v}\t0\t2",
    ),
    csv(
        "tradingview",
        ["NASDAQ_AAPL, 1D.csv", "AAPL", "ohlcv"],
        "time,open,high,low,close,Volume\n",
        "{s+14.5},{o},{h},{l},{c},{v}",
    ),
    csv(
        "tradingview",
        ["BATS_SPY, 1D_2f3c4.csv", "SPY", "ohlcv"],
        "time,open,high,low,close,Volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v}",
    ),
    Sample {
        layout: "barchart",
        file: "aapl_daily_historical-data-01-05-2024.csv",
        symbol: "AAPL",
        columns: "ohlcv",
        head: "Time,Open,High,Low,Last,Change,%Chg,Volume\n",
        row: "{d%m/%d/%Y},{o},{h},{l},{c},1,0.5%,{v}",
        between: "\n",
        foot: "\n\"Downloaded from Barchart.com as of 01-05-2024 04:15pm CST\"\n",
    },
    csv(
        "barchart",
        ["aapl_price-history-01-05-2024.csv", "AAPL", "ohlcv"],
        "Time,Open,High,Low,Latest,Change,%Change,Volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},1,0.5%,{v}",
    ),
    csv(
        "interactive_brokers_bars",
        ["AAPL.csv", "AAPL", "ohlcv"],
        "date,open,high,low,close,volume,average,barCount\n",
        "{d%Y%m%d},{o},{h},{l},{c},{v},185.9,7",
    ),
    csv(
        "fred_prices",
        ["SP500.csv", "SP500", "c"],
        "observation_date,SP500\n",
        "{d%Y-%m-%d},{c}",
    ),
    csv(
        "fred_prices",
        ["VIXCLS.csv", "VIXCLS", "c"],
        "DATE,VIXCLS\n",
        "{d%Y-%m-%d},{c}",
    ),
    csv(
        "ecb_exchange_rates",
        ["data.csv", "EXR.D.USD.EUR.SP00.A", "c"],
        "KEY,FREQ,CURRENCY,CURRENCY_DENOM,EXR_TYPE,EXR_SUFFIX,TIME_PERIOD,OBS_VALUE,OBS_STATUS\n",
        "EXR.D.USD.EUR.SP00.A,D,USD,EUR,SP00,A,{d%Y-%m-%d},{c},A",
    ),
    csv(
        "ecb_eurofxref",
        ["eurofxref-hist.csv", "USD", "c"],
        "Date,USD,JPY,GBP,CHF,CAD,BGN,\n",
        "{d%Y-%m-%d},{c},{o},{h},{l},{c},N/A,",
    ),
    csv(
        "kaggle_sp500_5yr",
        ["all_stocks_5yr.csv", "AAL", "ohlcv"],
        "date,open,high,low,close,volume,Name\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v},AAL",
    ),
    csv(
        "kaggle_huge_stock_market",
        ["aapl.us.txt", "AAPL", "ohlcv"],
        "Date,Open,High,Low,Close,Volume,OpenInt\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v},0",
    ),
    csv(
        "kaggle_cryptocurrency",
        ["coin_Bitcoin.csv", "BTC", "ohlcv"],
        "SNo,Name,Symbol,Date,High,Low,Open,Close,Volume,Marketcap\n",
        "1,Bitcoin,BTC,{d%Y-%m-%d} 23:59:59,{h},{l},{o},{c},{v},1",
    ),
    csv(
        "kaggle_jpx",
        ["stock_prices.csv", "1301", "ohlcv"],
        "RowId,Date,SecuritiesCode,Open,High,Low,Close,Volume,AdjustmentFactor,ExpectedDividend,\
         SupervisionFlag,Target\n",
        "1,{d%Y-%m-%d},1301,{o},{h},{l},{c},{v},1.0,,False,0.0007",
    ),
    csv(
        "akshare_hist",
        ["000001.csv", "000001", "ohlcv"],
        ",日期,股票代码,开盘,收盘,最高,最低,成交量,成交额,振幅,涨跌幅,涨跌额,换手率\n",
        "0,{d%Y-%m-%d},000001,{o},{c},{h},{l},{v/100},1,1,1,1,1",
    ),
    csv(
        "akshare_daily",
        ["sh600000.csv", "sh600000", "ohlcv"],
        "date,open,high,low,close,volume,amount,outstanding_share,turnover\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v},1,1,0.01",
    ),
    csv(
        "tushare_daily",
        ["daily.csv", "600000.SH", "ohlcv"],
        "ts_code,trade_date,open,high,low,close,pre_close,change,pct_chg,vol,amount\n",
        "600000.SH,{d%Y%m%d},{o},{h},{l},{c},1,1,1,{v/100},1",
    ),
    csv(
        "baostock",
        ["history.csv", "sh.600000", "ohlcv"],
        "date,code,open,high,low,close,preclose,volume,amount,adjustflag,turn,tradestatus,pctChg,isST\n",
        "{d%Y-%m-%d},sh.600000,{o},{h},{l},{c},1,{v},1,3,0.1,1,0.5,0",
    ),
    csv(
        "quandl_wiki",
        ["WIKI-AAPL.csv", "AAPL", "ohlcva"],
        "Date,Open,High,Low,Close,Volume,Ex-Dividend,Split Ratio,Adj. Open,Adj. High,Adj. Low,Adj. Close,\
         Adj. Volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v},0.0,1.0,1,1,1,{a},1",
    ),
    csv(
        "quandl_wiki",
        ["WIKI_PRICES.csv", "AAPL", "ohlcva"],
        "ticker,date,open,high,low,close,volume,ex-dividend,split_ratio,adj_open,adj_high,adj_low,adj_close,\
         adj_volume\n",
        "AAPL,{d%Y-%m-%d},{o},{h},{l},{c},{v},0.0,1.0,1,1,1,{a},1",
    ),
    json(
        "finnhub_candles",
        ["AAPL.json", "AAPL", "ohlcv"],
        "{\"c\":[c],\"h\":[h],\"l\":[l],\"o\":[o],\"s\":\"ok\",\"t\":[s],\"v\":[v]}",
        "",
        "",
    ),
    json(
        "twelve_data_json",
        ["series.json", "AAPL", "ohlcv"],
        "{\"meta\":{\"symbol\":\"AAPL\",\"interval\":\"1day\",\"currency\":\"USD\"},\"values\":[",
        "{{\"datetime\":\"{d%Y-%m-%d}\",\"open\":\"{o}\",\"high\":\"{h}\",\"low\":\"{l}\",\"close\":\"{c}\",\
         \"volume\":\"{v}\"}",
        "],\"status\":\"ok\"}",
    ),
    csv(
        "plain",
        ["AAPL.csv", "AAPL", "ohlcv"],
        "datetime;open;high;low;close;volume\n",
        "{d%Y-%m-%d};{o};{h};{l};{c};{v}",
    ),
    csv(
        "dukascopy",
        [
            "EURUSD_Candlestick_1_D_BID_02.01.2024-04.01.2024.csv",
            "EURUSD",
            "ohlcv",
        ],
        "Gmt time,Open,High,Low,Close,Volume\n",
        "{d%d.%m.%Y} 00:00:00.000,{o},{h},{l},{c},{v}",
    ),
    csv(
        "firstrate",
        ["AAPL_full_1day_adjsplit.txt", "AAPL", "ohlcv"],
        "",
        "{d%Y-%m-%d},{o},{h},{l},{c},{v}",
    ),
    csv(
        "crsp",
        ["dsf.csv", "14593", "ohlcv"],
        "PERMNO,date,TICKER,BIDLO,ASKHI,PRC,VOL,RET,OPENPRC,CFACPR\n",
        "14593,{d%Y%m%d},AAPL,{l},{h},-{c},{v},0.01,{o},",
    ),
    csv(
        "crsp_ciz",
        ["dsf_v2.csv", "14593", "ohlcv"],
        "PERMNO,DlyCalDt,DlyPrc,DlyPrcFlg,DlyVol,DlyLow,DlyHigh,DlyOpen\n",
        "14593,{d%Y-%m-%d},{c},TR,{v},{l},{h},{o}",
    ),
    csv(
        "cboe_index_history",
        ["VIX_History.csv", "VIX", "ohlc"],
        "DATE,OPEN,HIGH,LOW,CLOSE\n",
        "{d%m/%d/%Y},{o},{h},{l},{c}",
    ),
    csv(
        "plain",
        ["IBM.csv", "IBM", "ohlcva"],
        "Date,Open,High,Low,Close,Adjusted_close,Volume\n",
        "{d%Y-%m-%d},{o},{h},{l},{c},{a},{v}",
    ),
    json(
        "plain_json",
        ["AAPL.json", "AAPL", "ohlcva"],
        "[",
        "{{\"date\":\"{d%Y-%m-%d}\",\"open\":{o},\"high\":{h},\"low\":{l},\"close\":{c},\"adjusted_close\":{a},\
         \"volume\":{v}}",
        "]",
    ),
];

/// A stage kind, a layout, a file's name and text, and values of its first row.
type Other = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, f64)],
);

pub(crate) const OTHER_TABLES: &[Other] = &[
    (
        "ingest/rates",
        "bank_of_england",
        "sonia.csv",
        "DATE,IUDSOIA\n02 Jan 2024,5.1869\n03 Jan 2024,5.1866\n",
        &[("rate", 0.051_869)],
    ),
    (
        "ingest/option_chain",
        "optionmetrics",
        "opprcd.csv",
        "secid,date,symbol,exdate,cp_flag,strike_price,best_bid,best_offer,volume,open_interest,impl_volatility,\
         delta,gamma,vega,theta,ticker\n\
         101594,2024-01-02,AAPL 240216C185000,2024-02-16,C,185000,7.1,7.2,120,4000,0.24,0.55,0.02,25.5,-30.5,AAPL\n\
         101594,2024-01-02,AAPL 240216P185000,2024-02-16,P,185000,5.1,5.2,80,3000,-99.99,-99.99,,,,AAPL\n",
        &[
            ("strike", 185.0),
            ("bid", 7.1),
            ("vendor_vega", 25.5),
            ("vendor_theta", -30.5),
        ],
    ),
    (
        "ingest/option_chain",
        "deribit_book_summary_json",
        "summary.json",
        "{\"jsonrpc\":\"2.0\",\"result\":[\
         {\"volume_usd\":0.0,\"volume\":0.0,\"quote_currency\":\"BTC\",\"price_change\":null,\"open_interest\":5.0,\
         \"mark_price\":0.05,\"mark_iv\":60.5,\"mid_price\":0.05,\"low\":null,\"last\":0.049,\"interest_rate\":0.0,\
         \"instrument_name\":\"BTC-29MAR24-60000-C\",\"high\":null,\"estimated_delivery_price\":42000.0,\
         \"creation_timestamp\":1704190000000,\"bid_price\":0.048,\"base_currency\":\"BTC\",\"ask_price\":0.052,\
         \"underlying_price\":42500.0,\"underlying_index\":\"BTC-29MAR24\"},\
         {\"instrument_name\":\"BTC-PERPETUAL\",\"mark_price\":42500.0,\"bid_price\":42499.0,\"ask_price\":42501.0,\
         \"creation_timestamp\":1704190000000,\"base_currency\":\"BTC\",\"quote_currency\":\"USD\"},\
         {\"instrument_name\":\"BTC_USDC-29MAR24-60000-C\",\"mark_price\":2100.0,\"bid_price\":2000.0,\
         \"ask_price\":2200.0,\"creation_timestamp\":1704190000000,\"base_currency\":\"BTC\",\
         \"quote_currency\":\"USDC\",\"underlying_price\":42500.0}],\"usIn\":1,\"usOut\":2,\"usDiff\":1}",
        &[
            ("strike", 60_000.0),
            ("bid", 2040.0),
            ("last", 2082.5),
            ("implied_volatility", 0.605),
        ],
    ),
    (
        "ingest/option_chain",
        "deribit_book_summary",
        "summary.csv",
        "instrument_name,base_currency,quote_currency,underlying_price,underlying_index,mark_price,mark_iv,mid_price,\
         bid_price,ask_price,last,open_interest,volume,volume_usd,creation_timestamp\n\
         ETH-29MAR24-2500-P,ETH,ETH,2300.0,ETH-29MAR24,0.12,62.0,0.12,0.11,0.13,,10,0,0,1704190000000\n",
        &[("strike", 2500.0), ("bid", 253.0), ("implied_volatility", 0.62)],
    ),
    (
        "ingest/option_chain",
        "nse_udiff_bhavcopy",
        "BhavCopy_NSE_FO_0_0_0_20240718_F_0000.csv",
        "TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,XpryDt,FininstrmActlXpryDt,StrkPric,\
         OptnTp,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,UndrlygPric,SttlmPric,OpnIntrst,\
         ChngInOpnIntrst,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty\n\
         2024-07-18,2024-07-18,FO,NSE,IDF,1,,NIFTY,,2024-07-25,2024-07-25,,,NIFTY24JULFUT,24500,24800,24400,24790,\
         24790,24600,24800.85,24790,100,5,50,1,1,F1,25\n\
         2024-07-18,2024-07-18,FO,NSE,IDO,2,,NIFTY,,2024-07-25,2024-07-25,24500.00,CE,NIFTY24JUL24500CE,300,420,250,\
         385.5,385.5,290,24800.85,385.5,2000,100,900,1,1,F1,25\n",
        &[("strike", 24_500.0), ("last", 385.5), ("underlying", 24_800.85)],
    ),
];
