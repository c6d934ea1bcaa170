"""Writes the samples of vendors' layouts: a few rows of put-call consistent synthetic values under the documented column names."""
import csv, io, json, math, os, sys
from datetime import date, datetime, timezone, timedelta
out = sys.argv[1]
N = lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2)))
def price(s, k, t, v, r, call):
    d1 = (math.log(s / k) + (r + v * v / 2) * t) / (v * math.sqrt(t)); d2 = d1 - v * math.sqrt(t)
    c = s * N(d1) - k * math.exp(-r * t) * N(d2)
    return c if call else c - s + k * math.exp(-r * t)
def rows(symbol, s, strikes, days, expiries, r=0.04, tick=0.01, v0=0.2, width=0.02):
    for d in days:
        for e in expiries:
            for k in strikes:
                for call in (True, False):
                    t = (e - d).days / 365
                    v = v0 + 0.1 * (math.log(k / s)) ** 2 * 4 - 0.05 * math.log(k / s)
                    p = price(s, k, t, v, r, call)
                    half = max(tick, width * p / 2)
                    bid, ask = max(0, math.floor((p - half) / tick) * tick), math.ceil((p + half) / tick) * tick
                    n = max(2, -int(math.floor(math.log10(tick))))
                    yield dict(symbol=symbol, s=s, d=d, e=e, k=k, call=call, v=round(v, 4), mid=round(p, 4), bid=round(bid, n), ask=round(ask, n),
                               last=round(round(p / tick) * tick, n), volume=int(10 + k % 7), oi=int(100 + k % 50),
                               delta=round(N((math.log(s / k) + (r + v * v / 2) * t) / (v * math.sqrt(t))) - (0 if call else 1), 4))
def write(path, text):
    path = os.path.join(out, path); os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = 'wb' if isinstance(text, bytes) else 'w'
    open(path, mode).write(text)
def table(header, lines, sep=','):
    f = io.StringIO(); w = csv.writer(f, delimiter=sep, lineterminator='\n'); w.writerow(header)
    for line in lines: w.writerow(line)
    return f.getvalue()
D = [date(2024, 1, 18), date(2024, 1, 19)]; E = [date(2024, 2, 16), date(2024, 3, 15)]; K = [460, 470, 480, 490, 500]
spy = list(rows('SPY', 475.5, K, D, E))
spx = list(rows('SPX', 4780.25, [4600, 4700, 4800, 4900], D, E, tick=0.05))
occ = lambda r, root=None, pad=False: (root or r['symbol']).ljust(6 if pad else 0) + r['e'].strftime('%y%m%d') + ('C' if r['call'] else 'P') + '%08d' % round(r['k'] * 1000)
us = lambda d: d.strftime('%m/%d/%Y')
pairs = lambda rs: [(a, b) for a, b in zip(rs[::2], rs[1::2])]
# OptionsDX
early = list(rows('SPY', 473.25, K, D, E)); spx_early = list(rows('SPX', 4761.5, [4600, 4700, 4800, 4900], D, E, tick=0.05))
H = '[QUOTE_UNIXTIME], [QUOTE_READTIME], [QUOTE_DATE], [QUOTE_TIME_HOURS], [UNDERLYING_LAST], [EXPIRE_DATE], [EXPIRE_UNIX], [DTE], [C_DELTA], [C_GAMMA], [C_VEGA], [C_THETA], [C_RHO], [C_IV], [C_VOLUME], [C_LAST], [C_SIZE], [C_BID], [C_ASK], [STRIKE], [P_BID], [P_ASK], [P_SIZE], [P_LAST], [P_DELTA], [P_GAMMA], [P_VEGA], [P_THETA], [P_RHO], [P_IV], [P_VOLUME], [STRIKE_DISTANCE], [STRIKE_DISTANCE_PCT]'
def dx(c, p, at):
    unix = int((datetime(c['d'].year, c['d'].month, c['d'].day, 5, tzinfo=timezone.utc) + at).timestamp())
    eunix = int(datetime(c['e'].year, c['e'].month, c['e'].day, 21, tzinfo=timezone.utc).timestamp())
    return ', '.join(str(x) for x in [unix, f"{c['d']} {str(at)[:-3].zfill(5)}", c['d'], f'{at / timedelta(hours=1):.6f}', c['s'], c['e'], eunix, (c['e'] - c['d']).days, c['delta'], 0.01, 0.5, -0.1, 0.2, c['v'], f"{c['volume']:.6f}", c['last'], '12 x 14', c['bid'], c['ask'], f"{c['k']:.6f}", p['bid'], p['ask'], '3 x 9', p['last'], p['delta'], 0.01, 0.5, -0.1, -0.2, p['v'], '' if p['k'] == 460 else f"{p['volume']:.6f}", abs(c['k'] - c['s']), round(abs(c['k'] / c['s'] - 1), 3)])
def dx_file(path, snapshots): write(path, H + '\n' + '\n'.join(dx(c, p, at) for at, rs in snapshots for c, p in pairs(rs)) + '\n')
OPEN, LATE, CLOSE = timedelta(hours=10), timedelta(hours=15, minutes=45), timedelta(hours=16)
dx_file('optionsdx/spy_eod_202401.txt', [(CLOSE, spy)])
# Two snapshots a day.
dx_file('optionsdx_intraday/spy_30x_202401.txt', [(OPEN, early), (LATE, spy)])
# Cboe DataShop
base = 'underlying_symbol,quote_date,root,expiration,strike,option_type,open,high,low,close,trade_volume,bid_size_1545,bid_1545,ask_size_1545,ask_1545,underlying_bid_1545,underlying_ask_1545'.split(',')
calcs = 'implied_underlying_price_1545,active_underlying_price_1545,implied_volatility_1545,delta_1545,gamma_1545,theta_1545,vega_1545,rho_1545'.split(',')
eod = 'bid_size_eod,bid_eod,ask_size_eod,ask_eod,underlying_bid_eod,underlying_ask_eod,vwap,open_interest,delivery_code'.split(',')
def shop(r, with_calcs):
    first = ['^SPX', r['d'], 'SPX', r['e'], f"{r['k']:.3f}", 'C' if r['call'] else 'P', r['last'], r['ask'], r['bid'], r['last'], r['volume'], 10, round(r['bid'] - 0.1, 2), 11, round(r['ask'] + 0.1, 2), r['s'] - 1, r['s'] + 1]
    mid = [r['s'], r['s'], r['v'], r['delta'], 0.001, -0.5, 4.2, 1.1] if with_calcs else []
    return first + mid + [20, r['bid'], 21, r['ask'], r['s'], r['s'], r['last'], r['oi'], '']
write('cboe_datashop_eod/UnderlyingOptionsEODQuotes_2024-01.csv', table(base + eod, [shop(r, False) for r in spx]))
write('cboe_datashop_eod_calcs/UnderlyingOptionsEODCalcs_2024-01.csv', table(base + calcs + eod, [shop(r, True) for r in spx]))
interval = 'underlying_symbol,quote_datetime,root,expiration,strike,option_type,open,high,low,close,trade_volume,bid_size,bid,ask_size,ask,underlying_bid,underlying_ask,implied_underlying_price,active_underlying_price,implied_volatility,delta,gamma,theta,vega,rho,open_interest'.split(',')
write('cboe_datashop_intervals/UnderlyingOptionsIntervals_60min_calcs_oi_2024-01.csv', table(interval, [['^SPX', f"{r['d']} {str(at).zfill(8)}", 'SPX', r['e'], f"{r['k']:.3f}", 'C' if r['call'] else 'P', r['last'], r['ask'], r['bid'], r['last'], r['volume'], 20, r['bid'], 21, r['ask'], r['s'] - 1, r['s'] + 1, r['s'], r['s'], r['v'], r['delta'], 0.001, -0.5, 4.2, 1.1, r['oi']] for at, rs in [(OPEN, spx_early), (CLOSE, spx)] for r in rs]))
# Cboe delayed
day = [r for r in spx if r['d'] == D[1]]
write('cboe_delayed_json/_SPX.json', json.dumps({'timestamp': '2024-01-19 20:15:02', 'data': {'options': [dict(option=occ(r, 'SPXW'), bid=r['bid'], bid_size=3.0, ask=r['ask'], ask_size=4.0, iv=r['v'], open_interest=float(r['oi']), volume=float(r['volume']), delta=r['delta'], gamma=0.001, vega=4.2, theta=-0.5, rho=1.0, theo=r['mid'], change=0.1, open=r['last'], high=r['ask'], low=r['bid'], tick='up', last_trade_price=r['last'], last_trade_time='2024-01-19T15:59:50', percent_change=0.2, prev_day_close=r['last']) for r in day], 'symbol': '^SPX', 'security_type': 'index', 'current_price': 4780.25, 'bid': 4779.0, 'ask': 4781.0, 'close': 4780.25, 'last_trade_time': '2024-01-19T16:15:00'}, 'symbol': '_SPX'}, indent=1) + '\n')
half = 'Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest'.split(',')
lines = ['S&P 500 INDEX,Last: 4780.25,Change: 11.57', '"Date: January 19, 2024 at 4:15 PM EST",Bid: 4779,Ask: 4781,Size: 1*1,Volume: 0', '']
body = table(['Expiration Date', 'Calls'] + half + ['Strike', 'Puts'] + half, [[c['e'].strftime('%a %b %d %Y'), occ(c, 'SPXW'), c['last'], 0.1, c['bid'], c['ask'], c['volume'], c['v'], c['delta'], 0.001, c['oi'], f"{c['k']:.2f}", occ(p, 'SPXW'), p['last'], 0.1, p['bid'], p['ask'], p['volume'], p['v'], p['delta'], 0.001, p['oi']] for c, p in pairs(day)])
write('cboe_delayed_csv/spx_quotedata.csv', '\n'.join(lines) + '\n' + body)
# ORATS
H = 'ticker,tradeDate,expirDate,dte,strike,stockPrice,callVolume,callOpenInterest,callBidSize,callAskSize,putVolume,putOpenInterest,putBidSize,putAskSize,callBidPrice,callValue,callAskPrice,putBidPrice,putValue,putAskPrice,callBidIv,callMidIv,callAskIv,smvVol,putBidIv,putMidIv,putAskIv,residualRate,delta,gamma,theta,vega,rho,phi,driftlessTheta,callSmvVol,putSmvVol,extSmvVol,extCallValue,extPutValue,spotPrice,quoteDate,updatedAt,snapShotEstTime,snapShotDate,expiryTod'.split(',')
write('orats_strikes/ORATS_SMV_Strikes_202401.csv', table(H, [['SPY', c['d'], c['e'], (c['e'] - c['d']).days, c['k'], c['s'], c['volume'], c['oi'], 5, 6, p['volume'], p['oi'], 7, 8, c['bid'], c['mid'], c['ask'], p['bid'], p['mid'], p['ask'], c['v'], c['v'], c['v'], c['v'], p['v'], p['v'], p['v'], 0.001, c['delta'], 0.01, -0.1, 0.5, 0.2, 0.1, -0.1, c['v'], p['v'], c['v'], c['mid'], p['mid'], c['s'], f"{c['d']}T20:46:00Z", f"{c['d']}T20:46:05Z", '1546', f"{c['d']}T20:46:00Z", 'pm'] for c, p in pairs(spy)]))
# historicaloptiondata, discountoptiondata
H = 'underlying,underlying_last, exchange,optionroot,optionext,type,expiration,quotedate,strike,last,bid,ask,volume,openinterest,impliedvol,delta,gamma,theta,vega,optionalias,IVBid,IVAsk'
write('historicaloptiondata/L3_options_202401.csv', H + '\n' + ''.join(','.join(str(x) for x in ['SPY', r['s'], '*', occ(r), '', 'call' if r['call'] else 'put', us(r['e']), us(r['d']), r['k'], r['last'], r['bid'], r['ask'], r['volume'], r['oi'], r['v'], r['delta'], 0.01, -0.1, 0.5, occ(r), r['v'], r['v']]) + '\n' for r in spy))
H = 'UnderlyingSymbol,UnderlyingPrice,Exchange,OptionSymbol,OptionExt,Type,Expiration,DataDate,Strike,Last,Bid,Ask,Volume,OpenInterest,IV,Delta,Gamma,Theta,Vega,AKA'.split(',')
write('discountoptiondata/SPY_2024.csv', table(H, [['SPY', r['s'], '*', occ(r), '', 'call' if r['call'] else 'put', us(r['e']), us(r['d']), r['k'], r['last'], r['bid'], r['ask'], r['volume'], r['oi'], r['v'], r['delta'], 0.01, -0.1, 0.5, occ(r)] for r in spy]))
# yfinance
H = ',contractSymbol,lastTradeDate,strike,lastPrice,bid,ask,change,percentChange,volume,openInterest,impliedVolatility,inTheMoney,contractSize,currency'.split(',')
sday = [r for r in spy if r['d'] == D[1]]
for right, call in (('calls', True), ('puts', False)):
    rs = [r for r in sday if r['call'] == call]
    write(f'yfinance_option_chain/SPY_{right}_2024-01-19.csv', table(H, [[i, occ(r), '2024-01-19 20:59:58+00:00', float(r['k']), r['last'], r['bid'], r['ask'], 0.1, 0.5, '' if i == 1 else float(r['volume']), r['oi'], r['v'], r['s'] > r['k'], 'REGULAR', 'USD'] for i, r in enumerate(rs)]))
# Polygon
NY = lambda d: int(datetime(d.year, d.month, d.day, 5, tzinfo=timezone.utc).timestamp()) * 10**9
write('polygon_day_aggregates/2024-01.csv', table('ticker,volume,open,close,high,low,window_start,transactions'.split(','), [['O:' + occ(r), r['volume'], r['last'], r['last'], r['ask'], r['bid'], NY(r['d']), 3] for r in spy]))
write('polygon_snapshot/spy.json', json.dumps({'request_id': 'x', 'status': 'OK', 'results': [dict(break_even_price=r['k'] + r['mid'], day=dict(change=0.1, close=r['last'], high=r['ask'], last_updated=NY(r['d']), low=r['bid'], open=r['last'], volume=r['volume']), details=dict(contract_type='call' if r['call'] else 'put', exercise_style='american', expiration_date=str(r['e']), shares_per_contract=100, strike_price=r['k'], ticker='O:' + occ(r)), greeks=dict(delta=r['delta'], gamma=0.01, theta=-0.1, vega=0.5), implied_volatility=r['v'], last_quote=dict(ask=r['ask'], ask_size=10, bid=r['bid'], bid_size=12, last_updated=NY(r['d']) + 16 * 3600 * 10**9 - 10**9, midpoint=r['mid'], timeframe='REAL-TIME'), last_trade=dict(price=r['last'], size=1, timeframe='REAL-TIME'), open_interest=r['oi'], underlying_asset=dict(price=r['s'], ticker='SPY', timeframe='REAL-TIME')) for r in sday]}, indent=1) + '\n')
# Databento
ids = {occ(r, pad=True): 1000 + i for i, r in enumerate(sday)}
utc = lambda d: int(datetime(d.year, d.month, d.day, tzinfo=timezone.utc).timestamp()) * 10**9
e9 = lambda x: round(x * 10**9)
bars = [[utc(r['d']), 35, 30, ids[occ(r, pad=True)], e9(r['last']), e9(r['ask']), e9(r['bid']), e9(r['last']), r['volume']] for r in spy]
bars.insert(3, [utc(D[0]), 35, 30, 9999, e9(4800), e9(4801), e9(4799), e9(4800), 5])
write('databento_ohlcv/opra-pillar-202401.ohlcv-1d.csv', table('ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume'.split(','), bars))
H = 'ts_recv,ts_event,rtype,publisher_id,instrument_id,raw_symbol,security_update_action,instrument_class,min_price_increment,display_factor,expiration,activation,high_limit_price,low_limit_price,strike_price,currency,underlying,asset,security_type'.split(',')
NULL = 2**63 - 1
defs = [[utc(D[0]), utc(D[0]), 19, 30, i, occ(r, pad=True), 'A', 'C' if r['call'] else 'P', e9(0.01), 10**9, utc(r['e']), NULL, NULL, NULL, e9(r['k']), 'USD', 'SPY', 'SPY', 'OOF'] for r in sday for i in [ids[occ(r, pad=True)]]]
defs.append([utc(D[0]), utc(D[0]), 19, 30, 9999, 'ESH4', 'A', 'F', e9(0.25), 10**9, utc(E[1]), NULL, NULL, NULL, NULL, 'USD', '', 'ES', 'FUT'])
write('databento_ohlcv/definition-20240118.csv', table(H, defs))
# Deribit
btc = list(rows('BTC', 62000.0, [60000, 62000, 64000], [date(2024, 3, 4)], [date(2024, 3, 29), date(2024, 6, 28)], r=0.0, tick=31.0, v0=0.6))
inst = lambda r: f"BTC-{r['e'].day}{r['e'].strftime('%b%y').upper()}-{r['k']}-{'C' if r['call'] else 'P'}"
ms = int(datetime(2024, 3, 4, 8, tzinfo=timezone.utc).timestamp() * 1000)
def book(r, last): return {'instrument_name': inst(r), 'underlying_price': r['s'], 'underlying_index': 'BTC-29MAR24', 'mark_price': round(r['mid'] / r['s'], 6), 'mid_price': round((r['bid'] + r['ask']) / 2 / r['s'], 6), 'bid_price': round(r['bid'] / r['s'], 4), 'ask_price': None if r['k'] == 64000 and not r['call'] else round(r['ask'] / r['s'], 4), last: round(r['last'] / r['s'], 4), 'mark_iv': round(r['v'] * 100, 2), 'interest_rate': 0.0, 'open_interest': float(r['oi']), 'volume': float(r['volume']), 'volume_usd': 1000.0, 'high': None, 'low': None, 'price_change': None, 'estimated_delivery_price': r['s'], 'base_currency': 'BTC', 'quote_currency': 'BTC', 'creation_timestamp': ms}
write('deribit_book_summary_json/btc.json', json.dumps({'jsonrpc': '2.0', 'result': [book(r, 'last') for r in btc], 'usIn': 1, 'usOut': 2, 'usDiff': 1, 'testnet': False}, indent=1) + '\n')
bs = [book(r, 'last_price') for r in btc]
write('deribit_book_summary/btc.csv', table(list(bs[0]), [['' if v is None else v for v in b.values()] for b in bs]))
# NSE
H = 'TradDt,BizDt,Sgmt,Src,FinInstrmTp,FinInstrmId,ISIN,TckrSymb,SctySrs,XpryDt,FininstrmActlXpryDt,StrkPric,OptnTp,FinInstrmNm,OpnPric,HghPric,LwPric,ClsPric,LastPric,PrvsClsgPric,UndrlygPric,SttlmPric,OpnIntrst,ChngInOpnIntrst,TtlTradgVol,TtlTrfVal,TtlNbOfTxsExctd,SsnId,NewBrdLotQty,Rmks,Rsvd1,Rsvd2,Rsvd3,Rsvd4'.split(',')
nifty = list(rows('NIFTY', 24350.0, [24000, 24300, 24600], [date(2024, 7, 8)], [date(2024, 7, 25), date(2024, 8, 29)], r=0.065, tick=0.05))
fut = lambda e, tp, s: ['2024-07-08', '2024-07-08', 'FO', 'NSE', tp, 35000, '', s, '', e, e, '', '', f'{s}24JULFUT', 24400, 24450, 24300, 24410, 24410, 24300, 24350.0, 24410, 12000, 100, 9000, 1e9, 900, 'F1', 25, '', '', '', '', '']
N_ = [fut('2024-07-25', 'IDF', 'NIFTY'), fut('2024-07-25', 'STF', 'RELIANCE')]
for i, r in enumerate(nifty): N_.append(['2024-07-08', '2024-07-08', 'FO', 'NSE', 'IDO', 40000 + i, '', 'NIFTY', '', r['e'], r['e'], f"{r['k']:.2f}", 'CE' if r['call'] else 'PE', 'NIFTY' + r['e'].strftime('%y%b').upper() + str(r['k']), r['last'], r['ask'], r['bid'], r['last'], r['last'], r['last'], r['s'], r['last'], r['oi'] * 25, 25, r['volume'], 1e6, 20, 'F1', 25, '', '', '', '', ''])
write('nse_udiff_bhavcopy/BhavCopy_NSE_FO_0_0_0_20240708_F_0000.csv', table(H, N_))
# Interactive Brokers
H = 'time,symbol,secType,lastTradeDateOrContractMonth,strike,right,multiplier,exchange,currency,localSymbol,tradingClass,bid,bidSize,ask,askSize,last,volume,impliedVolatility,delta,gamma,vega,theta,undPrice'.split(',')
ib = [[f"{r['d']} 15:59:55-05:00", 'SPY', 'OPT', r['e'].strftime('%Y%m%d'), float(r['k']), 'C' if r['call'] else 'P', 100, 'SMART', 'USD', occ(r, pad=True), 'SPY', r['bid'], 10, r['ask'], 11, -1.0 if r['k'] == 500 else r['last'], r['volume'], r['v'], r['delta'], 0.01, 0.5, -0.1, r['s']] for r in sday]
ib.insert(0, ['2024-01-19 15:59:55-05:00', 'SPY', 'STK', '', 0.0, '', '', 'SMART', 'USD', 'SPY', 'SPY', 475.49, 10, 475.51, 12, 475.5, 1000, '', '', '', '', '', ''])
write('interactive_brokers/spy_tickers.csv', table(H, ib))
# Alpaca
write('alpaca_snapshots/SPY.json', json.dumps({'next_page_token': None, 'snapshots': {occ(r): dict(greeks=dict(delta=r['delta'], gamma=0.01, rho=0.1, theta=-0.1, vega=0.5), impliedVolatility=r['v'], latestQuote=dict(ap=r['ask'], **{'as': 10}, ax='C', bp=r['bid'], bs=11, bx='N', c='A', t='2024-01-19T20:59:59.123456789Z'), latestTrade=dict(c='I', p=r['last'], s=1, t='2024-01-19T20:50:00Z', x='N')) for r in sday}}, indent=1) + '\n')
# Lean
import zipfile
def zip_of(name, entries):
    path = os.path.join(out, name); os.makedirs(os.path.dirname(path), exist_ok=True)
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as z:
        for n, t in entries: z.writestr(zipfile.ZipInfo(n, (2024, 1, 19, 0, 0, 0)), t)
e4 = lambda x: round(x * 10000)
by = {}
for r in spy: by.setdefault((r['call'], r['k'], r['e']), []).append(r)
zip_of('lean_option_daily_quote/spy_2024_quote_american.zip', [(f"spy_quote_american_{'call' if c else 'put'}_{e4(k)}_{e.strftime('%Y%m%d')}.csv", '\n'.join(f"{r['d'].strftime('%Y%m%d')} 00:00,{e4(r['bid'])},{e4(r['bid'])},{e4(r['bid'])},{e4(r['bid'])},10,{e4(r['ask'])},{e4(r['ask'])},{e4(r['ask'])},{e4(r['ask'])},12" for r in rs)) for (c, k, e), rs in by.items()])
zip_of('lean_option_daily_trade/spy_2024_trade_american.zip', [(f"spy_trade_american_{'call' if c else 'put'}_{e4(k)}_{e.strftime('%Y%m%d')}.csv", '\n'.join(f"{r['d'].strftime('%Y%m%d')} 00:00,{e4(r['last'])},{e4(r['ask'])},{e4(r['bid'])},{e4(r['last'])},{r['volume']}" for r in rs)) for (c, k, e), rs in by.items()])
zip_of('lean_option_daily_open_interest/spy_2024_openinterest_american.zip', [(f"spy_openinterest_american_{'call' if c else 'put'}_{e4(k)}_{e.strftime('%Y%m%d')}.csv", '\n'.join(f"{r['d'].strftime('%Y%m%d')} 00:00,{r['oi']}" for r in rs)) for (c, k, e), rs in by.items()])
for d in D:
    rs = [r for r in spy if r['d'] == d]
    write(f"lean_option_universe/spy/{d.strftime('%Y%m%d')}.csv", '#expiry,strike,right,open,high,low,close,volume,open_interest,implied_volatility,delta,gamma,vega,theta,rho\n,,,475,476,474,475.5,1000000,,,,,,,\n' + ''.join(f"{r['e'].strftime('%Y%m%d')},{r['k']},{'C' if r['call'] else 'P'},{r['last']},{r['ask']},{r['bid']},{r['last']},{r['volume']},{r['oi']},{r['v']},{r['delta']},0.01,0.5,-0.1,0.2\n" for r in rs))
closes = [(date(2024, 1, 16), 474.9), (date(2024, 1, 17), 472.3), (date(2024, 1, 18), 476.5), (date(2024, 1, 19), 482.4)]
zip_of('lean_equity_daily/spy.zip', [('spy.csv', ''.join(f"{d.strftime('%Y%m%d')} 00:00,{e4(c - 1)},{e4(c + 1)},{e4(c - 2)},{e4(c)},{1000000 + i}\n" for i, (d, c) in enumerate(closes)))])
# Last price and volatility
write('last_and_volatility/spy_options.csv', table('date,symbol,expiration,strike,type,price,iv,underlying_price'.split(','), [[r['d'], 'SPY', r['e'], r['k'], 'C' if r['call'] else 'P', r['last'], r['v'], r['s']] for r in spy]))
# Bars
write('polygon_bars/2024-01.csv', table('ticker,volume,open,close,high,low,window_start,transactions'.split(','), [['SPY', 1000.5 + i, c - 1, c, c + 1, c - 2, NY(d), 30] for i, (d, c) in enumerate(closes)]))
write('interactive_brokers_bars/SPY.csv', table('date,open,high,low,close,volume,average,barCount'.split(','), [[d, c - 1, c + 1, c - 2, c, 1000 + i, c, 50] for i, (d, c) in enumerate(closes)]))
write('yahoo_panel/finrl_train.csv', table(',date,open,high,low,close,adj_close,volume,tic,day'.split(','), [[i, d, c - 1, c + 1, c - 2, c, c * 0.99, 1000 + i, t, d.weekday()] for t in ('AAPL', 'SPY') for i, (d, c) in enumerate(closes)]))
write('finrl_compustat/ETF_SPY.csv', table('datadate,tic,prccd,ajexdi,prcod,prchd,prcld,cshtrd'.split(','), [[d.strftime('%Y%m%d'), 'SPY', c, 2.0, c - 1, c + 1, c - 2, 1000 + i] for i, (d, c) in enumerate(closes)]))
# Rates
write('fred_series/fredgraph.csv', 'observation_date,DGS1MO,DGS3MO,DGS1,DGS2,DGS10,DGS30\n2024-01-17,5.54,5.46,4.82,4.34,4.10,4.31\n2024-01-18,5.53,5.45,4.83,4.34,4.14,4.36\n2024-01-15,,,,,,\n2024-01-19,5.55,5.45,4.84,4.39,4.15,4.36\n')
write('fred_one_series/DGS10.csv', 'DATE,DGS10\n2024-01-15,.\n2024-01-17,4.10\n2024-01-18,4.14\n2024-01-19,4.15\n')
write('us_treasury_xml/par_yields.csv', table('date,BC_1MONTH,BC_2MONTH,BC_3MONTH,BC_4MONTH,BC_6MONTH,BC_1YEAR,BC_2YEAR,BC_3YEAR,BC_5YEAR,BC_7YEAR,BC_10YEAR,BC_20YEAR,BC_30YEAR'.split(','), [['2024-01-18', 5.54, 5.52, 5.45, 5.40, 5.20, 4.81, 4.34, 4.14, 4.04, 4.10, 4.14, 4.48, 4.37], ['2024-01-19', 5.54, 5.52, 5.45, 5.41, 5.22, 4.84, 4.39, 4.19, 4.08, 4.14, 4.15, 4.47, 4.36]]))
write('us_treasury_csv/daily-treasury-rates.csv', 'Date,"1 Mo","2 Mo","3 Mo","4 Mo","6 Mo","1 Yr","2 Yr","3 Yr","5 Yr","7 Yr","10 Yr","20 Yr","30 Yr"\n01/19/2024,5.54,5.52,5.45,5.41,5.22,4.84,4.39,4.19,4.08,4.14,4.15,4.47,4.36\n01/18/2024,5.54,5.52,5.45,5.40,5.20,4.81,4.34,4.14,4.04,4.10,4.14,4.48,4.37\n')
# What a reader should find: rows, and the sums of columns.
def found(sample, layout, rs, bid=True, last=True, volume=True, oi=True, iv=True, s=True):
    total = lambda name, on=True: round(sum(r[name] for r in rs if r[name] is not None), 4) if on else 0
    return [sample, layout, len(rs), sum(1 for r in rs if r['call']), total('k'), total('bid', bid), total('ask', bid), total('last', last), total('volume', volume), total('oi', oi), total('v', iv), total('s', s)]
without = lambda rs, test, name: [dict(r, **{name: None}) if test(r) else r for r in rs]
coin = lambda rs: [dict(r, bid=round(r['bid'] / r['s'], 4) * r['s'], ask=None if r['k'] == 64000 and not r['call'] else round(r['ask'] / r['s'], 4) * r['s'], last=round(r['last'] / r['s'], 4) * r['s']) for r in rs]
calls = [r for r in sday if r['call']]
table_of = [
    found('optionsdx', 'optionsdx', without(spy, lambda r: r['k'] == 460 and not r['call'], 'volume'), oi=False),
    found('optionsdx_intraday', 'optionsdx', without(early + spy, lambda r: r['k'] == 460 and not r['call'], 'volume'), oi=False),
    found('cboe_datashop_intervals', 'cboe_datashop_intervals', spx_early + spx),
    found('cboe_datashop_eod', 'cboe_datashop_eod', spx, iv=False),
    found('cboe_datashop_eod_calcs', 'cboe_datashop_eod', spx),
    found('cboe_delayed_json', 'cboe_delayed_json', day),
    found('cboe_delayed_csv', 'cboe_delayed_csv', day),
    found('orats_strikes', 'orats_strikes', spy, last=False),
    found('historicaloptiondata', 'historicaloptiondata', spy),
    found('discountoptiondata', 'discountoptiondata', spy),
    found('yfinance_option_chain', 'yfinance_option_chain', without(sday, lambda r: r['k'] == 470 and r['e'] == E[0], 'volume'), s=False),
    found('polygon_day_aggregates', 'polygon_day_aggregates', spy, bid=False, oi=False, iv=False, s=False),
    found('polygon_snapshot', 'polygon_snapshot', sday),
    found('databento_ohlcv', 'databento_ohlcv', spy, bid=False, oi=False, iv=False, s=False),
    found('deribit_book_summary_json', 'deribit_book_summary_json', coin(btc)),
    found('deribit_book_summary', 'deribit_book_summary', coin(btc)),
    found('nse_udiff_bhavcopy', 'nse_udiff_bhavcopy', [dict(r, oi=r['oi'] * 25) for r in nifty], bid=False, iv=False),
    found('interactive_brokers', 'interactive_brokers', without(sday, lambda r: r['k'] == 500, 'last'), oi=False),
    found('alpaca_snapshots', 'alpaca_snapshots', sday, volume=False, oi=False, s=False),
    found('lean_option_daily_quote', 'lean_option_daily_quote', spy, last=False, volume=False, oi=False, iv=False, s=False),
    found('lean_option_daily_trade', 'lean_option_daily_trade', spy, bid=False, oi=False, iv=False, s=False),
    found('lean_option_universe', 'lean_option_universe', spy, bid=False, s=False),
    found('last_and_volatility', 'last_and_volatility', spy, bid=False, volume=False, oi=False),
]
write('expected_chains.csv', table('sample,layout,rows,calls,strikes,bids,asks,lasts,volumes,open_interest,volatilities,underlyings'.split(','), table_of))
bars_of = lambda sample, layout, n=1, adjusted=0: [sample, layout, 4 * n, round(n * sum(c for _, c in closes), 4), round(n * sum(c + 1 for _, c in closes), 4), round(adjusted, 4)]
write('expected_bars.csv', table('sample,layout,rows,closes,highs,adjusted'.split(','), [
    bars_of('lean_equity_daily', 'lean_equity_daily'), bars_of('polygon_bars', 'polygon_bars'), bars_of('interactive_brokers_bars', 'interactive_brokers_bars'),
    bars_of('yahoo_panel', 'yahoo_panel', 2, 2 * sum(c * 0.99 for _, c in closes)), bars_of('finrl_compustat', 'finrl_compustat', 1, sum(c / 2 for _, c in closes))]))
